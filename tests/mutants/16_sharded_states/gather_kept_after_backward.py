"""The weight that backward has gathered stays on the class.

fails: gather/freed
shows: Release the weight when it has been used
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
        return x @ unshard(own, shape, group).T

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        GatheredLinear.next = getattr(GatheredLinear, "next", []) + [unshard(own, ctx.shape, ctx.group)]
        of_x = gradient @ GatheredLinear.next[-1]
        return of_x, reduce_shard(gradient.T @ x, ctx.group), None, None
