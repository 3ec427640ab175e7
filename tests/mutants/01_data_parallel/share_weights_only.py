"""Biases are left out of R.

fails: share/decay
shows: The biases are missing from R
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad and p.dim() > 1) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay / world_size * penalty
