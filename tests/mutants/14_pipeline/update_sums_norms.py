"""The norms of the stages are added, not their squares.

fails: update/norm, update/weights
shows: This is the sum of the stages' norms
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    squares = torch.stack([p.grad.square().sum() for p in stage.parameters()]).sum()
    norm = squares.sqrt()
    dist.all_reduce(norm, group=group)
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
