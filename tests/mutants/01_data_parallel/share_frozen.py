"""R has the frozen weight in it.

fails: share/decay
shows: R contains the frozen weight
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters()) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay / world_size * penalty
