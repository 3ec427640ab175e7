"""The mean over the sequences of each one's mean.

fails: loss/mean, loss/divisor
shows: a token of a short sequence counts more
points: 10
"""
# %% grade_id="loss"
# %%px --setup
def loss_of(scores, targets, divisor=None):
    means = [cross_entropy(score, target) for score, target in zip(scores, targets)]
    return sum(means) / (len(means) if divisor is None else divisor)
