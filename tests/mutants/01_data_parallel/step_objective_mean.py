"""The mean of the shares is returned.

fails: step/objective
shows: nothing left to divide
points: 12
runs: step
"""
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    n, rank, p_ = len(x), dist.get_rank(group), dist.get_world_size(group)
    mine = rows_of(n, rank, p_)
    model.zero_grad()
    objective = share(model, x[mine], y[mine], n, decay, p_)
    objective.backward()
    sum_gradients(model, group)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p -= rate * p.grad
    objective = objective.detach()
    dist.all_reduce(objective, group=group)
    return objective.item() / p_
