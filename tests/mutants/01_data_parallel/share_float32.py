"""The logits are rounded to float32.

fails: share/losses, share/decay
shows: only to a few digits
points: 9
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x).float(), y, reduction="sum").double() / n + decay / world_size * penalty
