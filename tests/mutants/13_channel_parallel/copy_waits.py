"""Only rank 0 sums the gradient: it waits for the others in vain.

fails: operators/forward, operators/backward, operators/bytes
shows: A rank waited in vain
points: 13
runs: operators
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
        return ctx.c.allreduce(gradient) if ctx.c.rank == 0 else gradient, None


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


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
