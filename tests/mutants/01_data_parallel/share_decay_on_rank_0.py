"""Rank 0 has the whole decay, and the others have none.

fails: share/decay, step/weights, step/objective
shows: Does share ask which rank it is on
points: 8
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    losses = cross_entropy(model(x), y, reduction="sum") / n
    if dist.get_rank() == 0:
        losses = losses + decay * sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return losses
