"""A clone keeps the layout of its gradient, and the ranks' layouts differ.

fails: allgather/sum
shows: added up in the order of memory
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
        total = None
        for r, g in enumerate(gradients):
            g = g.clone()
            dist.reduce(g, group=ctx.group, group_dst=r)
            total = g if r == dist.get_rank(ctx.group) else total
        return total, None
