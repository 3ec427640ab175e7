"""Every function against one process.

It computes what a rank gives and gets, and the same mathematics on all ranks' tensors at once.
"""

import torch

from manyhands import functions

CALLS = ["bcast", "gather", "scatter", "allgather", "alltoall", "allreduce", "ring", "tuples"]


def shape(call, n, rank, item, uneven):
    """The shape of a rank's input number `item`.

    Uneven ones differ from rank to rank, and one of them is empty.
    """
    if not uneven or call == "allreduce":
        return (2, 3)
    return ((rank + 2 * item + n) % 4, 1 + rank)


def inputs(call, n, rank, root=0, uneven=False):
    """This rank's leaves."""
    count = (
        n
        if call == "alltoall" or (call == "scatter" and rank == root)
        else 2
        if call == "tuples"
        else 1
    )
    if call in ("bcast", "scatter") and rank != root:
        return []
    generator = torch.Generator().manual_seed(100 * n + rank)
    return [
        torch.randn(
            shape(call, n, rank, item, uneven), dtype=torch.float64, generator=generator
        ).requires_grad_()
        for item in range(count)
    ]


def outputs(c, call, xs, root=0):
    """What the rank gets, and a delegate or None."""
    if call in ("allgather", "allreduce"):
        y = getattr(functions, call)(c, xs[0])
        return (y if call == "allgather" else [y]), None
    if call == "alltoall":
        return functions.alltoall(c, xs), None
    if call == "bcast":
        return [functions.bcast(c, xs[0] if xs else None, root)], None
    if call == "scatter":
        return [functions.scatter(c, xs or None, root)], None
    if call == "gather":
        got = functions.gather(c, xs[0], root)
        return (got, None) if c.rank == root else ([], got)
    if c.size == 1:  # send and recv need a peer
        return xs, None
    delegate = functions.send(xs[0] if call == "ring" else xs, c, (c.rank + 1) % c.size, tag=3)
    got = functions.recv(c, (c.rank - 1) % c.size, delegate, tag=3, force_tuple=True)
    return got, None


def expected_outputs(call, everyones, root=0):
    """The outputs of all ranks, from the inputs of all ranks."""
    n = len(everyones)
    if call == "bcast":
        return [everyones[root]] * n
    if call == "gather":
        return [[xs[0] for xs in everyones] if rank == root else [] for rank in range(n)]
    if call == "scatter":
        return [[x] for x in everyones[root]]
    if call == "allgather":
        return [[xs[0] for xs in everyones]] * n
    if call == "alltoall":
        return [[xs[rank] for xs in everyones] for rank in range(n)]
    if call == "allreduce":
        return [[sum(xs[0] for xs in everyones)]] * n
    return [everyones[rank - 1] for rank in range(n)]


def objective(ys, rank):
    """An objective that is different on each rank, so that no gradient can stand for another's.

    Each output has weights of its own.
    """
    return (
        sum(
            ((1 + rank + 0.25 * i) * torch.sin(y * (1 + 0.5 * i + rank))).sum()
            for i, y in enumerate(ys)
        )
        if ys
        else torch.zeros((), dtype=torch.float64)
    )


def on_a_rank(c, call, root, uneven):
    """(outputs, gradients) of this rank."""
    xs = inputs(call, c.size, c.rank, root, uneven)
    ys, delegate = outputs(c, call, xs, root)
    J = objective(ys, c.rank)
    if delegate is not None:
        (J,) = functions.pseudo_connect(delegate, J)
    J.backward()
    return [y.detach() for y in ys], [x.grad for x in xs]


def in_one_process(call, n, root, uneven):
    """The same for all ranks, as a list."""
    everyones = [inputs(call, n, rank, root, uneven) for rank in range(n)]
    everyones_ys = expected_outputs(call, everyones, root)
    sum(objective(ys, rank) for rank, ys in enumerate(everyones_ys)).backward()
    return [
        ([y.detach() for y in ys], [x.grad for x in xs])
        for ys, xs in zip(everyones_ys, everyones, strict=True)
    ]
