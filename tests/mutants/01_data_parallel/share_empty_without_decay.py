"""An empty shard has no part of the decay.

fails: share/decay
shows: has left out its part of the decay
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    if len(x) == 0:
        return sum(p.sum() for p in model.parameters() if p.requires_grad) * 0
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay / world_size * penalty
