"""The same, and nobody thought of an empty shard.

fails: share/losses, share/decay
shows: This is the mean of the shards' means
points: 9
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y) / world_size + decay / world_size * penalty
