"""The mean in place of the sum, as DDP would do.

fails: gradients/sum, gradients/missing, step/weights, step/objective
shows: too small by a factor of 4, because it is the mean
shows: The steps are too small by a factor of 4
points: 7
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, group=group)
            p.grad /= dist.get_world_size(group)
