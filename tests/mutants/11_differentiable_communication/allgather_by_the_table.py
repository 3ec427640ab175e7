"""The article's row: each rank gathers what all have for their own pieces, and adds it up.

fails: allgather/sum
shows: an allgather, as in the article's table
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
        gathered = [torch.empty_like(gradient, memory_format=torch.contiguous_format) for gradient in gradients]
        dist.all_gather(gathered, gradients[dist.get_rank(ctx.group)].contiguous(), group=ctx.group)
        return sum(gathered), None
