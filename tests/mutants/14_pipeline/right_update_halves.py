"""The shared matrix counts half on each end, and PyTorch's functions clip."""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    squares = sum(p.grad.square().sum() / (2 if p is shared else 1) for p in stage.parameters())
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    nn.utils.clip_grads_with_norm_(stage.parameters(), max_norm, norm)
    optimiser.step()
    return float(norm)
