"""The input's gradient is each rank's part only.

fails: operators/backward, operators/bytes, out-split/gradients, out-split/bytes, pair/gradients, pair/bytes
shows: copy_to_parts does nothing in backward
shows: is only this rank's part. Since every rank has used the whole input
points: 10
runs: operators, out-split, pair
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


sum_of_parts, join_parts = Sum.apply, Join.apply


def copy_to_parts(x, c):
    return x.view_as(x)
