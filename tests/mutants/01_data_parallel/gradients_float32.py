"""The gradients travel as float32: half the bytes, and half the digits.

fails: gradients/sum, gradients/missing, gradients/bytes
shows: only to a few digits
shows: numbers of 8 bytes
points: 9
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    trained = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in trained]).float()
    dist.all_reduce(flat, group=group)
    for p, piece in zip(trained, flat.double().split([p.numel() for p in trained])):
        p.grad = piece.view_as(p)
