"""R over all names: the tied weight counts twice.

fails: share/decay
shows: The tied weight counts twice in R
points: 11
runs: share
"""
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    penalty = sum(p.square().sum() for _, p in model.named_parameters(remove_duplicate=False) if p.requires_grad) / 2
    return cross_entropy(model(x), y, reduction="sum") / n + decay / world_size * penalty
