"""All stages clip by the largest of their norms.

fails: update/norm, update/weights
shows: This is the largest of the stages' norms
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    squares = torch.stack([p.grad.square().sum() for p in stage.parameters()]).sum()
    dist.all_reduce(squares, op=dist.ReduceOp.MAX, group=group)
    norm = squares.sqrt()
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
