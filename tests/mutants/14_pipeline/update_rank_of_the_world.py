"""The copy that counts is that of rank 0 of the world, which may not be in the group.

fails: update/norm, update/weights
shows: although the norm is right in the pipeline of all ranks
shows: Repair the criterion above first
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    counted = [p for p in stage.parameters() if p is not shared or dist.get_rank() == 0]
    squares = sum((p.grad.square().sum() for p in counted), torch.zeros(()).double())
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
