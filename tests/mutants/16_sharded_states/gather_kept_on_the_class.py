"""Every gathered weight stays on the class.

fails: gather/freed
shows: on the class and in globals too
points: 27
runs: gather
"""
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    """x: rows of this rank. own: the shard of a weight of shape (outputs, inputs)."""

    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        ctx.save_for_backward(x, own)
        ctx.shape, ctx.group = shape, group
        GatheredLinear.kept = getattr(GatheredLinear, 'kept', []) + [unshard(own, shape, group)]
        return x @ GatheredLinear.kept[-1].T

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        to_x = gradient @ unshard(own, ctx.shape, ctx.group)
        rows = x.flatten(0, -2)
        to_own = reduce_shard(gradient.flatten(0, -2).T @ rows, ctx.group)
        return to_x, to_own, None, None

