"""Each rank adds up its own gradients of all pieces.

fails: allgather/sum, allgather/bytes
shows: Since gradients[r] belongs to rank r's piece
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
        return torch.stack(gradients).sum(dim=0), None
