"""Only what is not contiguous is copied; the other gradients are written into.

fails: allgather/sum
shows: The sum is right, but backward has written it into the gradient
points: 12
runs: allgather
"""
# %% grade_id="allgather"
# %%px --setup
class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        pieces = [torch.empty_like(x, memory_format=torch.contiguous_format)
                  for _ in range(dist.get_world_size(group))]
        dist.all_gather(pieces, x.detach().contiguous(), group=group)
        return tuple(pieces)

    @staticmethod
    def backward(ctx, *gradients):
        gradients = [g.contiguous() for g in gradients]
        for r, g in enumerate(gradients):
            dist.reduce(g, group=ctx.group, group_dst=r)
        return gradients[dist.get_rank(ctx.group)], None
