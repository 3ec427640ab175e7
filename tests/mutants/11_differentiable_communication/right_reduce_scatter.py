"""The allgather's backward by one reduce for each piece; the broadcast's by a gather to the root; delegates are added, not connected.

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
        mine, at_root = gradient.contiguous(), dist.get_rank(ctx.group) == ctx.root
        all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size(ctx.group))] if at_root else None
        dist.gather(mine, all_of_them, group=ctx.group, group_dst=ctx.root)
        return torch.stack(all_of_them).sum(dim=0) if at_root else torch.zeros_like(mine), None, None


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
        for r, gradient in enumerate(gradients):
            piece = gradient.clone(memory_format=torch.contiguous_format)
            dist.reduce(piece, group=ctx.group, group_dst=r)
            if r == dist.get_rank(ctx.group):
                mine = piece
        return mine, None


# %% grade_id="connect"
# %%px --setup
def round_trip(c, x, stage, last):
    if c.rank > 0:
        return functions.send(stage(functions.recv(c, c.rank - 1)), c, (c.rank + 1) % c.size)
    delegate = functions.send(stage(x), c, 1)
    return last(functions.recv(c, c.size - 1)) + delegate


def fan_out(c, pieces, own_loss):
    if c.rank > 0:
        return functions.recv(c, rank=0)
    return own_loss + sum(functions.send(piece, c, rank=r) for r, piece in enumerate(pieces) if r > 0)
