"""Scores and targets are padded with zeros, and the padding counts.

fails: loss/mean, loss/divisor
shows: Padded positions are counted as if they were tokens to predict
points: 10
"""
# %% grade_id="loss"
# %%px --setup
def loss_of(scores, targets, divisor=None):
    scores, targets = pad_sequence(scores), pad_sequence(targets)
    total = cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum")
    return total / (targets.numel() if divisor is None else divisor)
