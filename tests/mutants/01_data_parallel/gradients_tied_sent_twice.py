"""The tied weight is in the message twice: the right sum, and too many bytes.

fails: gradients/bytes
shows: Send each trained parameter only once
points: 12
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    trained = [p for _, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in trained])
    dist.all_reduce(flat, group=group)
    for p, piece in zip(trained, flat.split([p.numel() for p in trained])):
        p.grad = piece.view_as(p)
