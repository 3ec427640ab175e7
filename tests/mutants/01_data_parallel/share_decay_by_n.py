"""The decay is divided by the number of rows, with the losses.

fails: share/decay
shows: The decay was divided by n
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return (cross_entropy(model(x), y, reduction="sum") + decay / world_size * penalty) / n
