"""The penalty is taken from .data: the value is right, and its gradient is missing.

fails: share/decay
shows: The value is right but its gradient is not
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.data.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay / world_size * penalty
