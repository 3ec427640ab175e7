"""The right values by twice the bytes: an all-reduce, and the others throw the sum away.

fails: broadcast/bytes
shows: also gives it to ranks that do not need it
points: 13
"""
# %% grade_id="broadcast"
# %%px --setup
class Bcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, root, group):
        ctx.root, ctx.group = root, group
        y = x.detach().clone()
        dist.broadcast(y, group=group, group_src=root)
        return y

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(total), None, None
