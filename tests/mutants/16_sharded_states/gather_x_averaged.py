"""The gradient of x is divided by the number of ranks too.

fails: gather/gradients
shows: The gradient of x is averaged
points: 27
"""
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    """x: rows of this rank. own: the shard of a weight of shape (outputs, inputs)."""

    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        ctx.save_for_backward(x, own)
        ctx.shape, ctx.group = shape, group
        return x @ unshard(own, shape, group).T

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        of_x = gradient @ unshard(own, ctx.shape, ctx.group)
        return of_x / dist.get_world_size(ctx.group), reduce_shard(gradient.T @ x, ctx.group), None, None
