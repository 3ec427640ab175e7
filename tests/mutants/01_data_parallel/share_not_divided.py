"""The sum of the losses is not divided.

fails: share/losses, share/decay
shows: The losses are added up but not divided
points: 9
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") + decay / world_size * penalty
