"""f by a hook on its output, with a coalesced all-reduce; g from the mean, times the ranks; x enters only where it wants a gradient."""
# %% grade_id="f-and-g"
# %%px --setup
def copy_to(x, group=None):
    def summed(gradient):
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce_coalesced([gradient], group=group)
        return gradient

    y = x.view_as(x)
    if y.requires_grad:
        y.register_hook(summed)
    return y


class ReduceFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        mean = x.contiguous() * 1
        dist.all_reduce(mean, op=dist.ReduceOp.AVG, group=group)
        return mean * dist.get_world_size(group)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return gradient, None


def reduce_from(x, group=None):
    return ReduceFrom.apply(x, group)
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    if x.requires_grad:
        x = copy_to(x, group)
    return torch.addmm(b, x.flatten(0, -2), w).unflatten(0, x.shape[:-1])
