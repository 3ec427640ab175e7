"""The gradient is received into a float32 tensor.

fails: messages/gradients, messages/bytes, messages/order
shows: make room with dtype=ctx.dtype
points: 10
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
        gradient = torch.empty(ctx.shape)
        dist.recv(gradient, group=ctx.group, group_src=ctx.peer, tag=ctx.tag)
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
