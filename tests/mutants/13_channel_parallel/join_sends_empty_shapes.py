"""Join sends the numbers of channels as shapes of empty tensors, which have no bytes.

fails: operators/bytes
shows: More messages than needed travel in forward, although the bytes are right
points: 16
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
        ctx.start = sum(e.shape[1] for e in functions.allgather(c, x.new_empty(0, x.shape[1]))[:c.rank])
        ctx.channels = x.shape[1]
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, ctx.start:ctx.start + ctx.channels], None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
