"""One call of torch.distributed as a ledger notes it.

It has a name, its sizes, its group, and the times of its start and its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# method of ProcessGroup -> the position of the argument that holds what this rank hands in
CALLS = {
    "allreduce": 0,
    "allreduce_coalesced": 0,
    "broadcast": 0,
    "reduce": 0,
    "send": 0,
    "recv": 0,
    "recv_anysource": 0,
    "barrier": None,
    "monitored_barrier": None,
    "allgather": 1,
    "_allgather_base": 1,
    "all_gather_single": 1,
    "allgather_coalesced": 1,
    "all_gather_single_coalesced": 1,
    "allgather_into_tensor_coalesced": 1,
    "gather": 1,
    "scatter": 1,
    "reduce_scatter": 1,
    "_reduce_scatter_base": 1,
    "reduce_scatter_single": 1,
    "reduce_scatter_single_coalesced": 1,
    "reduce_scatter_tensor_coalesced": 1,
    "alltoall": 1,
    "alltoall_base": 1,
    "all_to_all_single": 1,
}
POINT_TO_POINT = ("send", "recv")
# the position of the root, or of the options that name it
_ROOT = {"broadcast": 1, "reduce": 1, "gather": 2, "scatter": 2}

# of a group: its name, its global ranks, this rank's own global number
Group = tuple[str, tuple[int, ...], int]


@dataclass(slots=True, eq=False)
class Entry:
    """One call.

    Times are `time.perf_counter()` seconds; `stop_s` is None until the work has ended.

    `numel` and `bytes` are the size of what this rank hands in (of what it makes room for, in
    "recv").
    """

    call: str
    numel: int
    bytes: int
    group_size: int
    start_s: float
    stop_s: float | None = None
    group: str = ""  # the group's name, the same on all its ranks
    ranks: tuple[int, ...] = ()  # global ranks of the group
    rank: int = -1  # this rank's own global number
    given: tuple[int, ...] = ()  # bytes of each tensor that is handed in
    taken: tuple[int, ...] = ()  # bytes of each tensor to be filled, where that is another argument
    itemsize: int = 1
    root: int = 0  # in the group, as peer is
    peer: int = -1  # of a message; -1 while it may come from anybody
    tag: int = 0
    native: bool = False  # called by C++ code, DDP's reducer above all
    task: int = -1  # the backward pass that called it, -1 outside


def describe(
    call: str, group: object, args: Sequence[Any], facts: Group, task: int, native: bool = False
) -> Entry:
    """The entry of a call of ProcessGroup's method `call` with these arguments.

    `facts` is (name, global ranks, own global rank) of the group.
    """
    given: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    place, itemsize, numel = CALLS[call], 1, 0
    if place is not None:
        tensors = tensors_in(args[place])
        given = tuple([t.numel() * t.element_size() for t in tensors])
        numel = sum([t.numel() for t in tensors])
        if tensors:
            itemsize = tensors[0].element_size()
        if place == 1:
            filled = tensors_in(args[0])
            taken = tuple([t.numel() * t.element_size() for t in filled])
            if filled and not tensors:
                itemsize = filled[0].element_size()
    entry = Entry(
        call,
        numel,
        sum(given),
        len(facts[1]),
        0.0,
        None,
        *facts,
        given,
        taken,
        itemsize,
        native=native,
        task=task,
    )
    if call in _ROOT:
        root = args[_ROOT[call]] if len(args) > _ROOT[call] else 0
        entry.root = getattr(root, "rootRank", root)
    elif call in ("send", "recv"):
        entry.peer, entry.tag = args[1], args[2]
    elif call == "recv_anysource":
        entry.call, entry.tag = "recv", args[1]  # the wait tells from whom
    elif call in ("alltoall_base", "all_to_all_single") and args[2]:
        entry.taken, entry.given = cut_bytes(args[0], args[2]), cut_bytes(args[1], args[3])
    return entry


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in an argument: one tensor, or lists of them to any depth."""
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            return tensors_in(value[0])
        return [tensor for item in value for tensor in tensors_in(item)]
    return [value] if hasattr(value, "element_size") else []


def cut_bytes(tensor: torch.Tensor, rows: Sequence[int]) -> tuple[int, ...]:
    """Bytes of the parts of a tensor that is cut into so many rows each.

    It is cut along its first dimension.
    """
    row_bytes = (
        tensor.numel() * tensor.element_size() // max(tensor.shape[0], 1)
        if tensor.dim()
        else tensor.element_size()
    )
    return tuple([n * row_bytes for n in rows])
