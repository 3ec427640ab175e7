"""A global dictionary keeps the gathered weights.

fails: gather/freed
shows: on the class and in globals too
points: 27
runs: gather
"""
# %% grade_id="gather"
# %%px --setup
WEIGHTS = {}
class GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        ctx.save_for_backward(x, own)
        ctx.shape, ctx.group = shape, group
        WEIGHTS[own.data_ptr()] = unshard(own, shape, group)
        return x @ WEIGHTS[own.data_ptr()].T

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        to_x = gradient @ unshard(own, ctx.shape, ctx.group)
        return to_x, reduce_shard(gradient.T @ x, ctx.group), None, None

