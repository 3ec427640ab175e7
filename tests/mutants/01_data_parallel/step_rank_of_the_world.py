"""Rows by the rank in the world, in groups of fewer ranks.

fails: step/weights, step/objective
shows: Rows, rank and world size must be counted in the group
points: 10
"""
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    n, rank, world_size = len(x), dist.get_rank(), dist.get_world_size(group)
    mine = rows_of(n, rank, world_size)
    model.zero_grad()
    objective = share(model, x[mine], y[mine], n, decay, world_size)
    objective.backward()
    sum_gradients(model, group)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p -= rate * p.grad
    objective = objective.detach()
    dist.all_reduce(objective, group=group)
    return objective.item()
