"""What test_mesh.py runs on its ranks: named tensors and cut layers.

Each is compared with the same in one process.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from manyhands.ledger import Ledger
from manyhands.mesh import Mesh, Named, copy_to, einsum, reduce_from

DIMS = {"x": ("batch", "in"), "w1": ("in", "hidden"), "b1": ("hidden",), "w2": ("hidden", "out")}
SIZES = {"batch": 12, "in": 6, "hidden": 12, "out": 6}
GRIDS = {}


def grid(*shape):
    """The first ranks as a mesh with axes x, y; made once."""
    if shape not in GRIDS:
        n = shape[0] * shape[1]
        made = (
            DeviceMesh("cpu", torch.arange(n).reshape(shape), mesh_dim_names=("x", "y"))
            if n < dist.get_world_size()
            else None
        )
        GRIDS[shape] = made or init_device_mesh("cpu", shape, mesh_dim_names=("x", "y"))
    return GRIDS[shape]


def numbers(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tensors():
    return {
        name: numbers(*(SIZES[d] for d in dims), seed=i).requires_grad_()
        for i, (name, dims) in enumerate(DIMS.items())
    }


def worst(pairs):
    return max((a.detach() - b.detach()).abs().max().item() for a, b in pairs)


def axis_of(entry, mesh):
    return next(
        axis
        for axis in mesh.shape
        if tuple(dist.get_process_group_ranks(mesh.group(axis))) == entry.ranks
    )


def program(shape, layout):
    """Run a program on the mesh and compare it with one process.

    Returns (worst error of loss and gradients, all-reduces forward and backward as (axis, numbers),
    shapes of the pieces), or None on a rank outside.
    """
    device_mesh = grid(*shape)
    if device_mesh.get_coordinate() is None:
        return None
    alone = tensors()
    expected = ((torch.tanh(alone["x"] @ alone["w1"] + alone["b1"]) @ alone["w2"]) ** 2).sum()
    expected.backward()
    mesh, whole = Mesh(device_mesh, layout), tensors()
    cut = {name: mesh.cut(whole[name], dims) for name, dims in DIMS.items()}
    with Ledger() as forward:
        h = (einsum(cut["x"], cut["w1"], ("batch", "hidden")) + cut["b1"]).map(torch.tanh)
        loss = einsum(h, cut["w2"], ("batch", "out")).map(torch.square).total()
    with Ledger() as backward:
        loss.backward()
    error = worst(
        [
            (loss, expected),
            *((cut[name].grad.whole(), alone[name].grad) for name in DIMS),
            *((cut[name].whole(), alone[name]) for name in DIMS),
        ]
    )
    calls = [
        sorted((axis_of(entry, mesh), entry.numel) for entry in ledger.entries)
        for ledger in (forward, backward)
    ]
    return error, *calls, {name: tuple(t.value.shape) for name, t in cut.items()}


def weights_once(shape, layout):
    """Use a tensor twice, and sum over dimensions in different ways.

    There are a product with a dimension that both keep, one operand summed by itself, and a bias
    whose names are turned round.
    """
    mesh = Mesh(grid(*shape), layout)
    a, b, c = (
        numbers(4, 6, 8, seed=1).requires_grad_(),
        numbers(4, 8, 2, seed=2).requires_grad_(),
        numbers(6, 4, seed=3).requires_grad_(),
    )
    y = torch.einsum("bij,bjk->bi", a, b) + c.T
    (y**2).sum().backward()
    named = [mesh.cut(t, dims) for t, dims in ((a, "bij"), (b, "bjk"), (c, "ib"))]
    z = einsum(named[0], named[1], "bi") + named[2]
    einsum(z, z, ()).total().backward()
    return worst((mine.grad.whole(), t.grad) for mine, t in zip(named, (a, b, c), strict=True))


WIDTH, HIDDEN, HEADS, TIME, BATCH = 16, 32, 4, 8, 2


def attention(x, q, k, v, o, heads):
    def split(w):
        return (x @ w.T).view(BATCH, TIME, heads, WIDTH // HEADS).transpose(1, 2)

    return (
        F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
        .transpose(1, 2)
        .reshape(BATCH, TIME, -1)
        @ o.T
    )


def block(x, p, heads, enter, leave):
    h = x + leave(
        attention(enter(F.layer_norm(x, (WIDTH,))), p["q"], p["k"], p["v"], p["o"], heads)
    )
    return (
        h
        + leave(F.gelu(enter(F.layer_norm(h, (WIDTH,))) @ p["up"].T + p["up_bias"]) @ p["down"].T)
        + p["down_bias"]
    )


def megatron():
    """Cut a block over all ranks by f and g.

    Returns (worst error, numbers of the all-reduces forward, and backward).
    """
    rank, p = dist.get_rank(), dist.get_world_size()
    rows, columns = {"q", "k", "v", "up", "up_bias"}, {"o", "down"}
    shapes = {
        "q": (WIDTH, WIDTH),
        "k": (WIDTH, WIDTH),
        "v": (WIDTH, WIDTH),
        "o": (WIDTH, WIDTH),
        "up": (HIDDEN, WIDTH),
        "down": (WIDTH, HIDDEN),
    } | {"up_bias": (HIDDEN,), "down_bias": (WIDTH,)}
    whole = {
        name: numbers(*shape, seed=i).div(4).requires_grad_()
        for i, (name, shape) in enumerate(shapes.items())
    }

    def mine(name, t):
        return (
            t.chunk(p, 0)[rank] if name in rows else t.chunk(p, 1)[rank] if name in columns else t
        )

    x = numbers(BATCH, TIME, WIDTH, seed=9).requires_grad_()
    y_alone = block(x, whole, HEADS, lambda t: t, lambda t: t)
    (y_alone**2).sum().backward()
    cut = {name: mine(name, t).detach().clone().requires_grad_() for name, t in whole.items()}
    x2 = x.detach().clone().requires_grad_()
    with Ledger() as forward:
        y = block(x2, cut, HEADS // p, copy_to, reduce_from)
    with Ledger() as backward:
        (y**2).sum().backward()
    pairs = [
        (y, y_alone),
        (x2.grad, x.grad),
        *((t.grad, mine(name, whole[name].grad)) for name, t in cut.items()),
    ]
    return (
        worst(pairs),
        [(e.call, e.numel) for e in forward.entries],
        [(e.call, e.numel) for e in backward.entries],
    )


def second_derivative():
    """Compare the second derivative of an MLP that is cut by f and g with one process.

    It is that of the squared gradient. It is also noted whether g leaves what it is given as it
    was.
    """
    rank, p = dist.get_rank(), dist.get_world_size()
    x, up, down = (
        numbers(*shape, seed=i).requires_grad_() for i, shape in enumerate([(3, 4), (4, 8), (8, 2)])
    )
    (slope,) = torch.autograd.grad(
        torch.tanh(torch.tanh(x @ up) @ down).sum(), x, create_graph=True
    )
    (slope**2).sum().backward()
    x2, up2, down2 = (
        t.detach().clone().requires_grad_()
        for t in (x, up.chunk(p, 1)[rank], down.chunk(p, 0)[rank])
    )
    part = torch.tanh(copy_to(x2) @ up2) @ down2
    before = part.detach().clone()
    (slope2,) = torch.autograd.grad(torch.tanh(reduce_from(part)).sum(), x2, create_graph=True)
    (slope2**2).sum().backward()
    pairs = [
        (slope, slope2),
        (x2.grad, x.grad),
        (up2.grad, up.grad.chunk(p, 1)[rank]),
        (down2.grad, down.grad.chunk(p, 0)[rank]),
    ]
    return worst(pairs), torch.equal(part, before)


def turned():
    """g of a tensor that is not contiguous."""
    x = numbers(3, 5, seed=dist.get_rank())
    total = sum(numbers(3, 5, seed=rank) for rank in range(dist.get_world_size()))
    return worst([(reduce_from(x.T), total.T)])


def text_of(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return None


def refusals():
    """{what: the message}."""
    device_mesh = grid(2, 2)
    mesh, diagonal = (
        Mesh(device_mesh, {"batch": "x", "hidden": "y"}),
        Mesh(device_mesh, {"i": "x", "j": "x"}),
    )
    x, w = mesh.cut(torch.ones(4, 6), ("batch", "in")), mesh.cut(torch.ones(6, 4), ("in", "hidden"))
    i, j = diagonal.cut(torch.ones(4), ("i",)), diagonal.cut(torch.ones(4), ("j",))
    nameless, pair = init_device_mesh("cpu", (4,)), dist.new_group([0, 1])
    messages = {
        "axis": text_of(lambda: Mesh(device_mesh, {"batch": "z"})),
        "no names": text_of(lambda: Mesh(nameless, {})),
        "one axis": text_of(lambda: diagonal.cut(torch.ones(4, 4), ("i", "j"))),
        "one axis, no tensor has both": text_of(lambda: einsum(i, j, ())),
        "divides": text_of(lambda: mesh.cut(torch.ones(5, 6), ("batch", "in"))),
        "names": text_of(lambda: mesh.cut(torch.ones(4, 6), ("batch",))),
        "twice": text_of(lambda: mesh.cut(torch.ones(6, 6), ("in", "in"))),
        "out": text_of(lambda: einsum(x, w, ("batch", "time"))),
        "two meshes": text_of(lambda: einsum(x, i, ("batch", "in"))),
        "plus": text_of(lambda: x + w),
        "map": text_of(lambda: x.map(torch.sum)),
        "no tensor": text_of(lambda: copy_to([1.0])),
    }
    if dist.get_rank() > 1:
        messages |= {
            call.__name__: text_of(lambda call=call: call(torch.ones(2), pair))
            for call in (copy_to, reduce_from)
        }
        messages["outside"] = text_of(lambda: Mesh(grid(1, 2), {}))
    else:
        grid(1, 2)
    return (
        messages,
        mesh.cut(torch.ones(4, 6), ("batch", "in")).grad is None,
        isinstance(x + x, Named),
    )
