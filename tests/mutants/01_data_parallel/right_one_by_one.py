"""One all-reduce for each parameter, all under way at once; zeros are filled in beforehand; autograd.grad in place of backward."""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    for work in [dist.all_reduce(p.grad, group=group, async_op=True) for p in trained]:
        work.wait()
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    n, p = len(x), dist.get_world_size(group)
    mine = rows_of(n, dist.get_rank(group), p)
    trained = [w for w in model.parameters() if w.requires_grad]
    objective = share(model, x[mine], y[mine], n, decay, p)
    flat = torch.cat([objective.detach().view(1), *(g.flatten() for g in torch.autograd.grad(objective, trained))])
    dist.all_reduce(flat, group=group)  # the objective travels with the gradients
    said, *pieces = flat.split([1, *(w.numel() for w in trained)])
    with torch.no_grad():
        for w, piece in zip(trained, pieces):
            w -= rate * piece.view_as(w)
    return said.item()
