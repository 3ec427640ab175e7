"""Gradients are received into torch.empty_like of a transposed gradient, which is transposed too.

fails: broadcast/sum, broadcast/others, broadcast/bytes
shows: nor is torch.empty_like of it
shows: receive into torch.empty(shape, dtype=...)
points: 11
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
        me, total = dist.get_rank(ctx.group), gradient.contiguous().clone()
        if me != ctx.root:
            dist.send(total, group=ctx.group, group_dst=ctx.root)
            return torch.zeros_like(total), None, None
        part = torch.empty_like(gradient)
        for r in range(dist.get_world_size(ctx.group)):
            if r != me:
                dist.recv(part, group=ctx.group, group_src=r)
                total += part
        return total, None, None
