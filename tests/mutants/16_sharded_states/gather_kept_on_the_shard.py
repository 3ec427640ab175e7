"""The gathered weight is an attribute of the shard.

fails: gather/freed
shows: as many as the weight has
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
        own.whole = unshard(own, shape, group)
        return x @ own.whole.T

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        of_x = gradient @ unshard(own, ctx.shape, ctx.group)
        return of_x, reduce_shard(gradient.T @ x, ctx.group), None, None
