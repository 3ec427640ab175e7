"""The sum is made in the gradient that backward was given.

fails: broadcast/sum, broadcast/others
shows: written it into the gradient that it was given
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
        gradient = gradient.contiguous()
        dist.reduce(gradient, group=ctx.group, group_dst=ctx.root)
        return gradient if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(gradient), None, None
