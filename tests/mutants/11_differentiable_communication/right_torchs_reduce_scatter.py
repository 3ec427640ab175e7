"""torch's own reduce_scatter_tensor for the allgather; pseudo_connect on the result of recv.

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
        mine = torch.empty_like(gradients[0], memory_format=torch.contiguous_format)
        dist.reduce_scatter_tensor(mine, torch.cat(gradients), group=ctx.group)
        return mine, None


# %% grade_id="connect"
# %%px --setup
def round_trip(c, x, stage, last):
    if c.rank > 0:
        came = functions.recv(c, rank=c.rank - 1)
        return functions.send(stage(came), c, rank=(c.rank + 1) % c.size)
    delegate = functions.send(stage(x), c, rank=1)
    came = functions.recv(c, rank=c.size - 1)
    came, = functions.pseudo_connect(delegate, came)
    return last(came)


def fan_out(c, pieces, own_loss):
    if c.rank > 0:
        return functions.recv(c, rank=0)
    joined = None
    for r in range(c.size - 1, 0, -1):
        delegate = functions.send(pieces[r], c, rank=r)
        joined = delegate if joined is None else functions.pseudo_connect(joined, delegate)[0]
    return functions.pseudo_connect(joined, own_loss)[0]
