"""Right values by the wrong algorithm: zeros around the own channels, and a sum.

fails: operators/bytes, out-split/bytes
shows: no zeros around them
points: 15
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
        sizes = c.allgather_obj(x.shape[1])
        ctx.start, ctx.channels = sum(sizes[:c.rank]), x.shape[1]
        whole = x.new_zeros(x.shape[0], sum(sizes), *x.shape[2:])
        whole[:, ctx.start:ctx.start + ctx.channels] = x
        return c.allreduce(whole)

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, ctx.start:ctx.start + ctx.channels], None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
