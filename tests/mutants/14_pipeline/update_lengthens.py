"""Gradients whose norm is smaller than max_norm are made larger.

fails: update/weights
shows: have been made larger
points: 20
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    counted = [p for p in stage.parameters() if p is not shared or dist.get_rank(group) == 0]
    squares = torch.stack([p.grad.square().sum() for p in counted]).sum()
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    for p in stage.parameters():
        p.grad *= max_norm / (norm + 1e-6)
    optimiser.step()
    return norm.item()
