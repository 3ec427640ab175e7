"""g sums a clone of x, which lies in memory as x does.

fails: f-and-g/values
shows: In reduce_from, one rank's numbers are in a different order in memory
points: 27
runs: f-and-g
"""
# %% grade_id="f-and-g"
# %%px --setup
class CopyTo(torch.autograd.Function):
    """Forward: x. Backward: the sum of all ranks' gradients."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total, None


class ReduceFrom(torch.autograd.Function):
    """Forward: the sum of all ranks' x. Backward: the gradient."""

    @staticmethod
    def forward(ctx, x, group):
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def copy_to(x, group=None):
    return CopyTo.apply(x, group)


def reduce_from(x, group=None):
    return ReduceFrom.apply(x, group)
