"""A clone keeps the layout of its gradient, and the ranks' layouts differ.

fails: broadcast/sum
shows: added up in the order of memory
points: 13
runs: broadcast
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
        total = gradient.clone()
        dist.reduce(total, group=ctx.group, group_dst=ctx.root)
        return (total if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(total)), None, None
