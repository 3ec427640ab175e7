"""The sums are functional collectives; layers with addmm and einsum; heads by split, torch's own attention."""
# %% grade_id="f-and-g"
# %%px --setup
from torch.distributed import _functional_collectives as functional


class CopyTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group or dist.group.WORLD
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        total = functional.all_reduce(gradient.contiguous(), "sum", ctx.group)
        return functional.wait_tensor(total), None


class ReduceFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        total = functional.all_reduce(x.contiguous(), "sum", group or dist.group.WORLD)
        return functional.wait_tensor(total)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clone(), None


copy_to = lambda x, group=None: CopyTo.apply(x, group)
reduce_from = lambda x, group=None: ReduceFrom.apply(x, group)
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    return nn.functional.linear(copy_to(x, group), w.T, b)
# %% grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    return torch.add(b, reduce_from(torch.einsum("...i,io->...o", x, w), group))
# %% grade_id="mlp"
# %%px --setup
def mlp(x, up, up_bias, down, down_bias, group=None):
    x = copy_to(x, group)
    return (reduce_from((x @ up + up_bias).tanh() @ down, group) + down_bias).tanh()
# %% grade_id="attention"
# %%px --setup
def cut_heads(qkv, out, heads, rank, size):
    per, left = divmod(heads, size)
    if left:
        raise ValueError("heads must divide by the ranks")
    head_size = out.shape[0] // heads
    first, count = rank * per * head_size, per * head_size
    parts = [part[:, first:first + count] for part in qkv.split(heads * head_size, dim=1)]
    return torch.cat(parts, 1), out[first:first + count].clone()


def attention(x, qkv, out, heads, group=None):
    here, head_size = heads // dist.get_world_size(group), 0
    head_size = out.shape[0] // here
    q, k, v = [part.view(*x.shape[:2], here, head_size).transpose(1, 2)
               for part in (copy_to(x, group) @ qkv).chunk(3, -1)]
    y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return reduce_from(y.transpose(1, 2).reshape(*x.shape[:2], -1) @ out, group)
