"""g is the package torch.distributed.tensor.

fails: f-and-g/values, f-and-g/gradients, f-and-g/calls
shows: this is the package's own answer, which is closed here, so write it yourself
points: 25
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
        from torch.distributed.tensor import DTensor, Partial, Replicate, DeviceMesh
        mesh = DeviceMesh.from_group(group or dist.group.WORLD, 'cpu')
        return DTensor.from_local(x.detach(), mesh, [Partial()]).redistribute(mesh, [Replicate()]).to_local()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def copy_to(x, group=None):
    return CopyTo.apply(x, group)


def reduce_from(x, group=None):
    return ReduceFrom.apply(x, group)
