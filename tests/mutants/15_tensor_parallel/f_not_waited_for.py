"""f starts its all-reduce, and does not wait for it.

fails: f-and-g/gradients
shows: in backward, copy_to sums the gradients
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
        dist.all_reduce(total, group=ctx.group, async_op=True)
        return total, None


class ReduceFrom(torch.autograd.Function):
    """Forward: the sum of all ranks' x. Backward: the gradient."""

    @staticmethod
    def forward(ctx, x, group):
        total = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def copy_to(x, group=None):
    return CopyTo.apply(x, group)


def reduce_from(x, group=None):
    return ReduceFrom.apply(x, group)
