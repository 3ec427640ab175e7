"""On the other ranks the gradient that backward was given is set to zero.

fails: broadcast/others
shows: and so does zero_()
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
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.reduce(total, group=ctx.group, group_dst=ctx.root)
        if dist.get_rank(ctx.group) != ctx.root:
            return gradient.zero_(), None, None
        return total, None, None
