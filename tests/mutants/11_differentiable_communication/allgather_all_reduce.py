"""The right values by twice the bytes: all gradients are all-reduced, and each rank takes its row.

fails: allgather/bytes
shows: use an all-to-all or a reduce-scatter
points: 13
"""
# %% grade_id="allgather"
# %%px --setup
class Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        pieces = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size(group))]
        dist.all_gather(pieces, x.detach().contiguous(), group=group)
        return tuple(pieces)

    @staticmethod
    def backward(ctx, *gradients):
        total = torch.stack(gradients)
        dist.all_reduce(total, group=ctx.group)
        return total[dist.get_rank(ctx.group)], None
