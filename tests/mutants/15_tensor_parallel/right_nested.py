"""Autograd functions within functions; a group of one rank sends nothing; f with an asynchronous all-reduce; head by head."""
# %% grade_id="f-and-g"
# %%px --setup
def summed(x, group):
    total = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
    if dist.get_world_size(group) > 1:
        dist.all_reduce(total, group=group, async_op=True).wait()
    return total


def copy_to(x, group=None):
    class Enter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return summed(gradient, group)
    return Enter.apply(x)


def reduce_from(x, group=None):
    others = summed(x.detach(), group) - x.detach()
    return x + others
# %% grade_id="attention"
# %%px --setup
def cut_heads(qkv, out, heads, rank, size):
    if heads % size != 0:
        raise ValueError("no")
    head_size, per = qkv.shape[1] // 3 // heads, heads // size
    columns = [part * heads * head_size + head * head_size + i for part in range(3)
               for head in range(rank * per, (rank + 1) * per) for i in range(head_size)]
    rows = [head * head_size + i for head in range(rank * per, (rank + 1) * per)
            for i in range(head_size)]
    return qkv[:, columns], nn.Parameter(out[rows])


def attention(x, qkv, out, heads, group=None):
    here = heads // dist.get_world_size(group)
    n = out.shape[0] // here
    x, y = copy_to(x, group), 0
    for head in range(here):
        q, k, v = [x @ qkv[:, part * here * n + head * n:][:, :n] for part in range(3)]
        scores = torch.einsum("rin,rjn->rij", q, k) * n ** -0.5
        scores = scores + torch.full(scores.shape[1:], -torch.inf, dtype=x.dtype, device=x.device).triu(1)
        y = y + torch.softmax(scores, 2) @ v @ out[head * n:(head + 1) * n]
    return reduce_from(y, group)
