"""Nothing is repaired: the weight is kept for backward, and the gradient of x is divided by the ranks.

fails: gather/gradients, gather/traffic, gather/freed
shows: The gradient of x is averaged
shows: If the weight is still in memory from forward
points: 25
"""
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        weight = unshard(own, shape, group)
        ctx.save_for_backward(x, weight)
        ctx.group = group
        return x @ weight.T

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        to_x, to_weight = gradient @ weight, gradient.T @ x
        to_x /= dist.get_world_size(ctx.group)
        return to_x, reduce_shard(to_weight, ctx.group), None, None
