"""Backward takes it that all ranks have equally many channels.

fails: operators/backward, out-split/gradients
shows: This is not the gradient of this rank's channels
points: 14
runs: operators, out-split
"""
# %% grade_id="operators"
# %%px --setup
class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.c = c
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.c.allreduce(gradient), None


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        return c.allreduce(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        parts = functions.allgather(c, x)
        ctx.start, ctx.channels = c.rank * x.shape[1], x.shape[1]
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, ctx.start:ctx.start + ctx.channels], None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
