"""The objective is that after the update.

fails: step/objective
shows: the objective after the update
points: 12
runs: step
"""
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    n, rank, p_ = len(x), dist.get_rank(group), dist.get_world_size(group)
    mine = rows_of(n, rank, p_)
    model.zero_grad()
    share(model, x[mine], y[mine], n, decay, p_).backward()
    sum_gradients(model, group)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p -= rate * p.grad
        after = share(model, x[mine], y[mine], n, decay, p_)
    dist.all_reduce(after, group=group)
    return after.item()
