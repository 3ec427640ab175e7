"""The gradient of the shard is that of the own rows alone.

fails: gather/gradients, gather/traffic
shows: made from this rank's tensor alone
points: 26
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
        return of_x, shard(gradient.T @ x, dist.get_rank(ctx.group), dist.get_world_size(ctx.group)), None, None
