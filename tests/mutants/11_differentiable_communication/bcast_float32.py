"""The sum is made in float32.

fails: broadcast/sum, broadcast/bytes
shows: right to about 7 digits
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
        total = gradient.float().contiguous()
        dist.reduce(total, group=ctx.group, group_dst=ctx.root)
        total = total.double()
        return (total if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(total)), None, None
