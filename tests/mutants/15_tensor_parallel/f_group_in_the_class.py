"""The group is kept in the class, where the next call replaces it.

fails: f-and-g/gradients, f-and-g/calls
shows: ctx belongs to one call, so keep the group there
points: 26
runs: f-and-g
"""
# %% grade_id="f-and-g"
# %%px --setup
class CopyTo(torch.autograd.Function):
    """Forward: x. Backward: the sum of all ranks' gradients."""

    @staticmethod
    def forward(ctx, x, group):
        CopyTo.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=CopyTo.group)
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
