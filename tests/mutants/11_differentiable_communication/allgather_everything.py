"""The right values by p times the bytes: all gradients are gathered on all ranks.

fails: allgather/bytes
shows: Each rank needs only the gradients of its piece
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
        mine = torch.stack(gradients)
        everything = [torch.empty_like(mine) for _ in gradients]
        dist.all_gather(everything, mine, group=ctx.group)
        return sum(one[dist.get_rank(ctx.group)] for one in everything), None
