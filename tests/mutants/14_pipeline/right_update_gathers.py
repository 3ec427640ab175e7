"""The stages gather their squares as Python numbers, and the last one counts the matrix."""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    import math

    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    size = dist.get_world_size(group)
    last = dist.get_rank(group) == size - 1
    own = sum(p.grad.square().sum().item() for p in stage.parameters() if p is not shared or last)
    each = [None] * size
    dist.all_gather_object(each, own, group=group)
    norm = math.sqrt(sum(each))
    for p in stage.parameters():
        p.grad.mul_(min(1.0, max_norm / norm))
    optimiser.step()
    return norm
