"""Means that are added up.

fails: share/losses, share/decay
shows: This is the sum of the shards' means
points: 9
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    losses = cross_entropy(model(x), y) if len(x) else 0
    return losses + decay / world_size * penalty
