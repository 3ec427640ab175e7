"""The all-reduce is that of the world, in which not all ranks take part.

fails: step/weights, step/objective
shows: group=group
points: 10
runs: step
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    trained = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in trained])
    dist.all_reduce(flat)
    for p, piece in zip(trained, flat.split([p.numel() for p in trained])):
        p.grad = piece.view_as(p)
