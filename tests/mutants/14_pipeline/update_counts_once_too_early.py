"""One copy of the shared matrix is counted, but before its gradient is summed, so the norm may be below max_norm.

fails: update/norm, update/weights
shows: The square of a sum is not the sum of the squares
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    counted = [p for p in stage.parameters() if p is not shared or dist.get_rank(group) == 0]
    squares = sum((p.grad.square().sum() for p in counted), torch.zeros(()).double())
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
