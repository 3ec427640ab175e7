"""The norm over all stages is right in itself, but it is computed before the shared gradient is summed.

fails: update/norm, update/weights
shows: The square of a sum is not the sum of the squares
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    squares = torch.stack([p.grad.square().sum() for p in stage.parameters()]).sum()
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
