"""No autograd.Function: a hook, and detached differences; the convolutions are matrix products."""
# %% grade_id="operators"
# %%px --setup
def copy_to_parts(x, c):
    x = x.view_as(x)
    if x.requires_grad:
        x.register_hook(c.allreduce)
    return x


def sum_of_parts(x, c):
    return x + (c.allreduce(x) - x).detach()


def join_parts(x, c):
    parts = list(functions.allgather(c, x.detach()))
    parts[c.rank] = x
    return torch.cat(parts, dim=1)
# %% grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    x = copy_to_parts(x, c)
    columns = nn.functional.unfold(x, weight.shape[2:], stride=stride, padding=padding)
    height = (x.shape[2] + 2 * padding - weight.shape[2]) // stride + 1
    y = (weight.flatten(1) @ columns).unflatten(2, (height, -1))
    return join_parts(y if bias is None else y + bias[:, None, None], c)
# %% grade_id="moved"
# %%px --setup
def moved_bytes(way, x, weight, y, size):
    copies = {"out": (y, x, x), "in": (y, y), "pair": (y, y, x, x), "data": (weight, weight)}[way]
    return sum(math.prod(shape) for shape in copies) * (size - 1) * 4


def largest_side(batch, c_in, c_out, kernel):
    side = 0
    while batch * c_out * (side + 1) ** 2 <= c_out * c_in * kernel ** 2:
        side += 1
    return side
