"""Sum and Copy write the sum into what they were handed: the caller's x, and the gradient that others still read.

fails: operators/forward, operators/backward
shows: Forward has written into the x that it was given
shows: Backward has written into the gradient
points: 14
runs: operators
"""
# %% grade_id="operators"
# %%px
class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.c = c
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient.copy_(ctx.c.allreduce(gradient))
        return gradient, None


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        x.copy_(c.allreduce(x))
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        parts = functions.allgather(c, x)
        ctx.sizes, ctx.rank = [p.shape[1] for p in parts], c.rank
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.split(ctx.sizes, 1)[ctx.rank], None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
