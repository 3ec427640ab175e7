"""Forward saves the whole weight, and backward uses it.

fails: gather/traffic, gather/freed
shows: still in memory from forward, it was never freed
shows: as many as the weight has
points: 26
"""
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    """x: rows of this rank. own: the shard of a weight of shape (outputs, inputs)."""

    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        weight = unshard(own, shape, group)
        ctx.save_for_backward(x, weight)
        ctx.shape, ctx.group = shape, group
        return x @ weight.T

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        of_x = gradient @ weight
        return of_x, reduce_shard(gradient.T @ x, ctx.group), None, None
