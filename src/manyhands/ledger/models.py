"""The messages that a collective of `torch.distributed` is taken to consist of.

A model, not a measurement.

A ledger sees that a collective was called, not what its library sends for it: that depends on the library, the size and
the network. So one textbook algorithm stands for each collective, and every account names it. Ranks are counted 0 to p
- 1 inside the group, S is the number of bytes of the whole tensor.

| collective | model | messages sent by a rank | bytes sent by a rank | rounds | source |
|---|---|---|---|---|---|
| all-reduce | ring | 2(p - 1) | 2(p - 1)/p S | 2(p - 1) | Patarasuk and Yuan 2009 |
| all-gather, reduce-scatter | ring | p - 1 | (p - 1)/p S | p - 1 | Thakur, Rabenseifner and Gropp 2005 |
| broadcast, reduce | binomial tree | up to log2 p; all together p - 1 | S each | log2 p, rounded up | the same |
| gather, scatter | direct | one to or from each other rank | its part of S | 1 | |
| all-to-all | direct | p - 1 | all but its own part | 1 | |
| barrier | dissemination | log2 p, rounded up | 0 | log2 p, rounded up | Hensgen, Finkel and Manber 1988 |
| monitored barrier | direct | to rank 0 and back | 0 | 2 | |

What gloo of PyTorch 2.13 really sends has been counted at the switch of the emulated network, for
four ranks and tensors of 256 KiB (`tests/dist/test_ledger_programs.py`): as the models say, each
rank, with two exceptions. Its reduce-scatter is a whole all-reduce, so it sends twice the bytes;
its reduce is a reduce-scatter around the ring and a gathering of the parts, so its root sends (p -
1)/p S, and each other rank S, not the tree's inner ranks alone.

Patarasuk, Yuan 2009: Bandwidth optimal all-reduce algorithms for clusters of workstations, J.
Parallel Distrib. Comput. 69(2). Thakur, Rabenseifner, Gropp 2005: Optimization of collective
communication operations in MPICH, Int. J. High Perform. Comput. Appl. 19(1). Hensgen, Finkel,
Manber 1988: Two algorithms for barrier synchronization, Int. J. Parallel Program. 17(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """What a rank sends or receives in one step of a model.

    `step` counts from 0, `kind` is "sent" or "received", and `peer` is the rank's number in the
    group.
    """

    step: int
    kind: str
    peer: int
    bytes: int


Model = Callable[[int, int, Sequence[int], Sequence[int], int, int], list[Step]]


def steps(
    call: str,
    p: int,
    rank: int,
    given: Sequence[int],
    taken: Sequence[int],
    itemsize: int = 1,
    root: int = 0,
) -> list[Step]:
    """`[Step, ...]` of one rank.

    `given` and `taken` are the sizes in bytes of the tensors that the call handed in and was to
    fill.
    """
    return _STEPS[call](p, rank, given, taken, itemsize, root) if p > 1 else []


def name(call: str) -> str:
    """What the model of a collective is called in tables."""
    return NAMES[call]


def length(call: str, p: int) -> int:
    """The number of steps that the model takes with p ranks."""
    if p == 1:
        return 0
    return {"ring": p - 1, "ring, twice": 2 * (p - 1), "direct": 1, "direct, twice": 2}.get(
        NAMES[call], (p - 1).bit_length()
    )


def split_evenly(total: int, p: int, itemsize: int) -> list[int]:
    """The bytes of p parts as `torch.tensor_split` cuts them.

    They are whole elements; the first parts are one element larger.
    """
    numel = total // itemsize
    return [itemsize * (numel // p + (i < numel % p)) for i in range(p)]


def _parts(sizes: Sequence[int], p: int, itemsize: int) -> list[int]:
    """Sizes of p parts: as they are if there are p, else the sum, cut evenly."""
    return list(sizes) if len(sizes) == p else split_evenly(sum(sizes), p, itemsize)


def _around(p: int, rank: int, parts: Sequence[int], first: int, start: int = 0) -> list[Step]:
    """p - 1 steps of a ring: in step s a rank sends part `rank + first - s` to the next rank."""
    steps_of_rank = []
    for s in range(p - 1):
        steps_of_rank.append(Step(start + s, "sent", (rank + 1) % p, parts[(rank + first - s) % p]))
        steps_of_rank.append(
            Step(start + s, "received", (rank - 1) % p, parts[(rank - 1 + first - s) % p])
        )
    return steps_of_rank


def _all_reduce(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    parts = split_evenly(sum(given), p, itemsize)
    return _around(p, rank, parts, 0) + _around(p, rank, parts, 1, start=p - 1)


def _all_gather(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    return _around(p, rank, _parts(taken, p, itemsize), 0)


def _reduce_scatter(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    return _around(p, rank, _parts(given, p, itemsize), -1)  # so that rank i ends with part i


def _broadcast(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    return _tree(p, rank, sum(given), root)


def _reduce(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    last, other = (p - 1).bit_length() - 1, {"sent": "received", "received": "sent"}
    return [
        Step(last - s.step, other[s.kind], s.peer, s.bytes)
        for s in reversed(_tree(p, rank, sum(given), root))
    ]


def _tree(p: int, rank: int, size: int, root: int) -> list[Step]:
    """In step k the ranks below 2^k (counted from the root) send to the one 2^k further on."""
    mine, steps_of_rank = (rank - root) % p, []
    for k in range((p - 1).bit_length()):
        if mine < 2**k and mine + 2**k < p:
            steps_of_rank.append(Step(k, "sent", (rank + 2**k) % p, size))
        elif 2**k <= mine < 2 ** (k + 1):
            steps_of_rank.append(Step(k, "received", (rank - 2**k) % p, size))
    return steps_of_rank


def _gather(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    if rank != root:
        return [Step(0, "sent", root, sum(given))]
    parts = _parts(taken, p, itemsize)
    return [Step(0, "received", peer, parts[peer]) for peer in range(p) if peer != root]


def _scatter(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    if rank != root:
        return [Step(0, "received", root, sum(taken))]
    parts = _parts(given, p, itemsize)
    return [Step(0, "sent", peer, parts[peer]) for peer in range(p) if peer != root]


def _all_to_all(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    out, back = _parts(given, p, itemsize), _parts(taken, p, itemsize)
    others = [peer for peer in range(p) if peer != rank]
    return [Step(0, "sent", peer, out[peer]) for peer in others] + [
        Step(0, "received", peer, back[peer]) for peer in others
    ]


def _barrier(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    hops = [(k, 2**k) for k in range((p - 1).bit_length())]
    return [
        Step(k, kind, (rank + hop * sign) % p, 0)
        for k, hop in hops
        for kind, sign in (("sent", 1), ("received", -1))
    ]


def _monitored_barrier(
    p: int, rank: int, given: Sequence[int], taken: Sequence[int], itemsize: int, root: int
) -> list[Step]:
    if rank:
        return [Step(0, "sent", 0, 0), Step(1, "received", 0, 0)]
    return [
        Step(s, kind, peer, 0) for s, kind in ((0, "received"), (1, "sent")) for peer in range(1, p)
    ]


_ALIKE: dict[tuple[str, Model], tuple[str, ...]] = {
    ("ring, twice", _all_reduce): ("allreduce", "allreduce_coalesced"),
    ("ring", _all_gather): (
        "allgather",
        "_allgather_base",
        "all_gather_single",
        "allgather_coalesced",
        "all_gather_single_coalesced",
        "allgather_into_tensor_coalesced",
    ),
    ("ring", _reduce_scatter): (
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_single",
        "reduce_scatter_single_coalesced",
        "reduce_scatter_tensor_coalesced",
    ),
    ("binomial tree", _broadcast): ("broadcast",),
    ("binomial tree", _reduce): ("reduce",),
    ("direct", _gather): ("gather",),
    ("direct", _scatter): ("scatter",),
    ("direct", _all_to_all): ("alltoall", "alltoall_base", "all_to_all_single"),
    ("dissemination", _barrier): ("barrier",),
    ("direct, twice", _monitored_barrier): ("monitored_barrier",),
}
NAMES = {call: model for (model, _), calls in _ALIKE.items() for call in calls}
_STEPS = {call: function for (_, function), calls in _ALIKE.items() for call in calls}
