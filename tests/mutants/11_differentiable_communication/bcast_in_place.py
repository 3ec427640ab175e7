"""dist.reduce writes into the gradient that backward was given, whatever its layout.

fails: broadcast/sum, broadcast/others
shows: Backward has written into a gradient that it was given
shows: has written into the gradient that backward was given
points: 12
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
        total = gradient
        dist.reduce(total, group=ctx.group, group_dst=ctx.root)
        if dist.get_rank(ctx.group) != ctx.root:
            total = torch.zeros_like(total)
        return total, None, None
