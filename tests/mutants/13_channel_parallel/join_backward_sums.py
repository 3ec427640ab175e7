"""The join is functions.allgather, whose backward sums: gradients four times too large.

fails: operators/backward, operators/bytes, out-split/gradients, out-split/bytes
shows: The gradient of x is too large by a factor of 4
shows: In backward, a join keeps the slice
shows: join_parts needs no message in backward
points: 12
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
        ctx.start, ctx.channels = sum(part.shape[1] for part in parts[:c.rank]), x.shape[1]
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, ctx.start:ctx.start + ctx.channels], None


copy_to_parts, sum_of_parts = Copy.apply, Sum.apply


def join_parts(x, c):
    return torch.cat(functions.allgather(c, x), dim=1)
