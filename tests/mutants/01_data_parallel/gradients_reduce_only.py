"""Only the first rank of the group has the sum.

fails: gradients/sum, gradients/missing, gradients/bytes
shows: is the sum on the ranks [0] of the group
points: 9
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.reduce(p.grad, group_dst=0, group=group)
