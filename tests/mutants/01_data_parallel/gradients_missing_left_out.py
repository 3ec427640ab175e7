"""The flat message has only the gradients that are there: ranks send messages of different sizes.

fails: gradients/missing
shows: One rank has no gradient for the last layer
points: 12
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    there = [p for p in model.parameters() if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in there])
    dist.all_reduce(flat, group=group)
    for p, piece in zip(there, flat.split([p.numel() for p in there])):
        p.grad = piece.view_as(p)
