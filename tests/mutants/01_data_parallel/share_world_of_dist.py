"""The world size is that of the process group.

fails: share/decay
shows: by the number of ranks that the process group has instead of by `world_size`
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay / dist.get_world_size() * penalty
