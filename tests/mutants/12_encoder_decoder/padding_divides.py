"""The sum is right, but it is divided by all places of the padded batch.

fails: loss/mean
shows: it was divided by the number of positions, padding included
points: 11
"""
# %% grade_id="loss"
# %%px --setup
def loss_of(scores, targets, divisor=None):
    targets = pad_sequence(targets, padding_value=-100)
    total = cross_entropy(pad_sequence(scores).flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    return total / (targets.numel() if divisor is None else divisor)
