"""The flat sum is not written back.

fails: gradients/sum, gradients/missing
shows: was not written back
points: 10
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    trained = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in trained])
    dist.all_reduce(flat, group=group)
