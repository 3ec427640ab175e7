"""The others return their own gradient, as if their x had been used.

fails: broadcast/others
shows: what it handed in was overwritten by the broadcast
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
        dist.reduce(total, group=ctx.group, group_dst=ctx.root)
        return total if dist.get_rank(ctx.group) == ctx.root else gradient, None, None
