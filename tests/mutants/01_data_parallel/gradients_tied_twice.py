"""A loop over names sums the tied weight under both of them.

fails: gradients/sum, gradients/missing, gradients/bytes
shows: too large by a factor of 4, perhaps because it is tied, has two names, and was summed twice
shows: are enough
points: 9
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for name, p in model.named_parameters(remove_duplicate=False):
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, group=group)
