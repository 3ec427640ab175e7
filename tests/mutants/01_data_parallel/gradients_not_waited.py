"""All all-reduces are begun, and none is waited for.

fails: gradients/sum, gradients/missing
shows: never waited for
points: 10
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad, group=group, async_op=True)
