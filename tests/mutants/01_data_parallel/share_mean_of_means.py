"""Each rank's mean, divided by the number of ranks; an empty shard is left out.

fails: share/losses, share/decay
shows: This is the mean of the shards' means
points: 9
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    losses = cross_entropy(model(x), y) / world_size if len(x) else 0
    return losses + decay / world_size * penalty
