"""Means weighted by their rows are right, but the mean of an empty shard is not a number.

fails: share/losses, share/decay
shows: The sum is not a number
points: 9
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y) * len(x) / n + decay / world_size * penalty
