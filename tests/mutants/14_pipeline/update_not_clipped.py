"""The norm is right, but the gradients are not clipped.

fails: update/weights
shows: The gradients were not clipped
points: 20
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    counted = [p for p in stage.parameters() if p is not shared or dist.get_rank(group) == 0]
    squares = sum((p.grad.square().sum() for p in counted), torch.zeros(()).double())
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    optimiser.step()
    return norm.item()
