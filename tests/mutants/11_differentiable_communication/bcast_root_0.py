"""The sum is made at rank 0, whatever the root.

fails: broadcast/sum, broadcast/others
shows: Is the sum made at ctx.root
shows: although the root is
points: 12
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
        dist.reduce(total, group=ctx.group, group_dst=0)
        return total if dist.get_rank(ctx.group) == 0 else torch.zeros_like(total), None, None
