"""The gradient of the weight is all-reduced, and then cut.

fails: gather/traffic
shows: an all-gather and a reduce-scatter send
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
        rank, ranks = dist.get_rank(ctx.group), dist.get_world_size(ctx.group)
        of_weight = gradient.T @ x / ranks
        dist.all_reduce(of_weight, group=ctx.group)
        of_x = gradient @ unshard(own, ctx.shape, ctx.group)
        return of_x, shard(of_weight, rank, ranks), None, None
