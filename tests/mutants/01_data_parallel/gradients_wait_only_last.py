"""Only the last request is awaited.

fails: gradients/sum, gradients/missing
shows: never waited for
points: 10
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    works = []
    for p in reversed([p for p in model.parameters() if p.requires_grad]):
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        works.append(dist.all_reduce(p.grad, group=group, async_op=True))
    works[-1].wait()
