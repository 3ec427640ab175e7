"""The piece is chosen by the rank in the world, in every group.

fails: allgather/sum, allgather/bytes
shows: ranks are counted in the group
points: 11
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
        mine = torch.stack(gradients)
        everything = [torch.empty_like(mine) for _ in gradients]
        dist.all_gather(everything, mine, group=ctx.group)
        return sum(one[dist.get_rank() % len(gradients)] for one in everything), None
