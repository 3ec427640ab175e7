"""Each rank takes its own gradient of its own piece; nothing is sent.

fails: allgather/sum, allgather/bytes
shows: The other ranks used the piece too
shows: Each rank has a gradient for each of the others
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
        return gradients[dist.get_rank(ctx.group)], None
