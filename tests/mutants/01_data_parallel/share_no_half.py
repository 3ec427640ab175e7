"""The half of R is forgotten.

fails: share/decay
shows: R is half the sum of the squares
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + 2 * decay / world_size * penalty
