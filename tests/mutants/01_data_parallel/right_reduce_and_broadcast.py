"""Gradients go through the group's first rank; the optimiser adds the decay; rows by tensor_split; a weighted mean."""
# %% grade_id="rows"
# %%px --setup
def rows_of(n, rank, world_size):
    edges = [len(part) for part in torch.arange(n).tensor_split(world_size)]
    return slice(sum(edges[:rank]), sum(edges[:rank + 1]))
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        if p.requires_grad:
            gradient = torch.zeros_like(p) if p.grad is None else p.grad.clone()
            dist.reduce(gradient, group=group, group_dst=0)
            dist.broadcast(gradient, group=group, group_src=0)
            p.grad = gradient
# %% grade_id="share"
# %%px --setup
def share(model, x, y, n, decay, world_size):
    losses = cross_entropy(model(x), y) * (len(x) / n) if len(x) else model(x).sum()
    norms = [p.norm() ** 2 for p in model.parameters() if p.requires_grad]
    return losses + decay * torch.stack(norms).sum() / (2 * world_size)
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    p, mine = dist.get_world_size(group), rows_of(len(x), dist.get_rank(group), dist.get_world_size(group))
    optimiser = torch.optim.SGD([w for w in model.parameters() if w.requires_grad], lr=rate, weight_decay=decay)
    losses = share(model, x[mine], y[mine], len(x), 0.0, p)
    losses.backward()
    sum_gradients(model, group)
    told = share(model, x[mine], y[mine], len(x), decay, p).detach()
    dist.all_reduce(told, group=group)
    optimiser.step()
    optimiser.zero_grad()
    return told
