"""`src=` names a rank of the world, where the peer is counted in the group.

fails: messages/gradients, messages/bytes
shows: counted in the group here
points: 11
runs: messages
"""
# %% grade_id="messages"
# %%px --setup
class Send(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, peer, tag, group):
        ctx.peer, ctx.tag, ctx.group = peer, tag, group
        ctx.shape, ctx.dtype = x.shape, x.dtype
        dist.send(x.detach().contiguous(), group=group, group_dst=peer, tag=tag)
        return torch.zeros((), dtype=x.dtype)

    @staticmethod
    def backward(ctx, gradient_of_delegate):
        gradient = torch.empty(ctx.shape, dtype=ctx.dtype)
        dist.recv(gradient, group=ctx.group, src=ctx.peer, tag=ctx.tag)
        return gradient, None, None, None


class Recv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, delegate, shape, dtype, peer, tag, group):
        ctx.peer, ctx.tag, ctx.group = peer, tag, group
        x = torch.empty(shape, dtype=dtype)
        dist.recv(x, group=group, group_src=peer, tag=tag)
        return x

    @staticmethod
    def backward(ctx, gradient):
        post(gradient.contiguous(), ctx.peer, ctx.tag, ctx.group)
        return torch.zeros((), dtype=gradient.dtype), None, None, None, None, None
