"""The outputs are gathered as objects, outside autograd.

fails: operators/forward, operators/backward, operators/bytes, out-split/values, out-split/gradients, out-split/bytes
shows: is outside the graph
points: 10
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
    return torch.cat(c.allgather_obj(x.detach()), dim=1)
