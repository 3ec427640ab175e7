"""f and g call each other, in the form with setup_context; heads by indices; a mask of a large negative number; generators."""
# %% grade_id="f-and-g"
# %%px --setup
class CopyTo(torch.autograd.Function):
    @staticmethod
    def forward(x, group):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.group = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        return ReduceFrom.apply(gradient, ctx.group), None


class ReduceFrom(torch.autograd.Function):
    @staticmethod
    def forward(x, group):
        total = torch.zeros_like(x, memory_format=torch.contiguous_format).add_(x)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.group = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        return CopyTo.apply(gradient, ctx.group), None


def copy_to(x, group=None):
    return CopyTo.apply(x, group)


def reduce_from(x, group=None):
    return ReduceFrom.apply(x, group)
# %% grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    y = reduce_from(x @ w, group)
    y += b
    return y
# %% grade_id="attention"
# %%px --setup
def cut_heads(qkv, out, heads, rank, size):
    if heads % size:
        raise ValueError("heads do not divide")
    rows = torch.arange(len(out), device=out.device).chunk(size)[rank]
    columns = torch.cat([rows + part * len(out) for part in range(3)])
    return [qkv.index_select(1, columns), out.index_select(0, rows)]


def attention(x, qkv, out, heads, group=None):
    here = heads // dist.get_world_size(group)
    rows, places, _ = x.shape
    q, k, v = (copy_to(x, group) @ qkv).reshape(rows, places, 3, here, -1).permute(2, 0, 3, 1, 4)
    seen = torch.ones(places, places, dtype=torch.bool, device=x.device).tril()
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~seen, -1e30)
    each = (scores.softmax(-1) @ v).movedim(1, 2).reshape(rows, places, -1)
    return reduce_from(each @ out, group)
# %% grade_id="reductions"
def reductions(a, b, out, layout):
    every = tuple(dict.fromkeys(a + b))
    on = list(map(layout.get, filter(layout.__contains__, every)))
    if any(on.count(axis) > 1 for axis in on):
        raise ValueError
    needed = lambda dims, but: (layout[d] for d in dims if d in layout and d not in but)
    return [needed(every, out), needed(b, a), frozenset(needed(a, b))]
