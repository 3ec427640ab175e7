"""The all-reduce of torch.distributed's functional collectives, which return the sum in a new tensor; the step looks at its rows twice."""
# %% grade_id="gradients"
# %%px --setup
import torch.distributed._functional_collectives as functional

def sum_gradients(model, group=None):
    group = group or dist.group.WORLD
    for p in model.parameters():
        if p.requires_grad:
            p.grad = functional.all_reduce(torch.zeros_like(p) if p.grad is None else p.grad, "sum", group) + 0
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    n, p = len(x), dist.get_world_size(group)
    mine = rows_of(n, dist.get_rank(group), p)
    model.zero_grad()
    share(model, x[mine], y[mine], n, decay, p).backward()
    with torch.no_grad():
        objective = share(model, x[mine], y[mine], n, decay, p)
        dist.all_reduce(objective, group=group)
        sum_gradients(model, group)
        for w in model.parameters():
            if w.requires_grad:
                w -= rate * w.grad
    return objective.item()
