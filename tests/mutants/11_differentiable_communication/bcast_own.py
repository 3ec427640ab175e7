"""The root takes its own gradient; nothing is sent.

fails: broadcast/sum, broadcast/bytes
shows: This is the root's own gradient
shows: Every rank except the root has a gradient that the root does not know
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
        return gradient if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(gradient), None, None
