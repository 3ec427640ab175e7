"""Join sends the numbers of channels in a message of their own.

fails: operators/bytes
shows: for example a message with sizes
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
        return ctx.c.allreduce(gradient.contiguous()), None


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        return c.allreduce(x.contiguous())

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        with torch.no_grad():
            parts = functions.allgather(c, x.detach().contiguous())
        n = torch.zeros(c.size); n[c.rank] = x.shape[1]; n = c.allreduce(n); ctx.first = int(n[:c.rank].sum())
        ctx.mine = x.shape[1]
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, ctx.first:ctx.first + ctx.mine].contiguous(), None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
