"""Frozen parameters are sent as zeros, and have a gradient afterwards.

fails: gradients/sum, gradients/missing, gradients/bytes
shows: is frozen but has a gradient now
shows: and frozen ones never
points: 9
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        dist.all_reduce(p.grad, group=group)
