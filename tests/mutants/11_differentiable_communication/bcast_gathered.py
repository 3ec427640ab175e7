"""The seed article's row: gradients are gathered, and one of them is taken.

fails: broadcast/sum, broadcast/bytes
shows: Gathering is not enough
shows: Only the root needs the sum
points: 12
"""
# %% grade_id="broadcast"
# %%px --setup
class Bcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, root, group):
        ctx.root, ctx.group = root, group
        y = x.detach().clone()
        dist.broadcast(y, group=group, group_src=root)
        return y

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.contiguous()
        gathered = [torch.empty_like(total) for _ in range(dist.get_world_size(ctx.group))]
        dist.all_gather(gathered, total, group=ctx.group)
        total = gathered[(ctx.root + 1) % len(gathered)]
        return total if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(total), None, None
