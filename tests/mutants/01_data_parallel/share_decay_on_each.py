"""Every rank has the whole decay in its share: it counts once per rank.

fails: share/decay, step/weights, step/objective
shows: The decay counts 4 times, because each of 4 ranks
shows: In each step, the decay counts 4 times
points: 8
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay * penalty
