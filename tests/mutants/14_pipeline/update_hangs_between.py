"""Only the ends add up their squares, so the stages between wait.

fails: update/norm, update/weights
shows: All stages of `group` must take part
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    squares = torch.stack([p.grad.square().sum() for p in stage.parameters()]).sum()
    if shared is None:
        dist.all_reduce(squares, group=group)
    else:
        dist.all_reduce(shared.grad, group=ends)
    norm = squares.sqrt()
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
