"""Right values by the wrong algorithm: everyone gathers all parts, then sums.

fails: operators/bytes, in-split/bytes, pair/bytes
shows: More bytes travel in forward than a sum of the outputs needs
shows: If every rank gathers all parts and then adds them up
points: 14
runs: operators, in-split, pair
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
        return torch.stack(functions.allgather(c, x)).sum(0)

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
