"""FSDP's way: the weight's storage is resized to nothing, and filled again in backward.

runs: gather
"""
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        weight = unshard(own, shape, group).clone()
        y = x @ weight.T
        weight.untyped_storage().resize_(0)
        ctx.save_for_backward(x, own)
        ctx.weight, ctx.group = weight, group
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        weight = ctx.weight
        weight.untyped_storage().resize_(weight.numel() * weight.element_size())
        weight.copy_(unshard(own, weight.shape, ctx.group))
        of_x = gradient @ weight
        del ctx.weight, weight
        return of_x, reduce_shard(gradient.T @ x, ctx.group), None, None
