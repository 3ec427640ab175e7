"""Each rank returns its own share.

fails: step/objective
shows: A rank's share is only a part of it
points: 12
"""
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    n, rank, world_size = len(x), dist.get_rank(group), dist.get_world_size(group)
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
    return objective.item()
