"""The N-fold gradient of a replicated loss is "corrected" by dividing.

fails: allgather/sum
shows: nothing must be corrected
points: 12
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
        outgoing = torch.stack(gradients)
        incoming = torch.empty_like(outgoing)
        dist.all_to_all_single(incoming, outgoing, group=ctx.group)
        return incoming.mean(dim=0), None
