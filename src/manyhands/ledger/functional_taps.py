"""Where the ledgers hear torch's functional collectives, those of DTensor among them.

They are in `torch.distributed._functional_collectives`.

Python calls them as `torch.ops._c10d_functional.all_reduce(...)`: while a ledger is open, a
stand-in has the operator's place there. It is no kernel in front of the operator, as those for what
C++ calls are: that would replace torch's own kernel for the key Autograd, and with it the gradient.
What the operator itself calls skips that key, and so is not noted a second time. Not seen:
functional messages between two ranks, and what compiled code calls.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from manyhands.ledger.entry import CALLS, cut_bytes, describe

if TYPE_CHECKING:
    import torch

    from manyhands.ledger.entry import Entry, Group

    Note = Callable[[Entry, Sequence[Any]], None]
    Facts = Callable[[Any], Group]  # of a ProcessGroup
    Waited = Callable[[Sequence[Entry]], None]
    UnderWay = dict[int, tuple[Any, Entry]]  # id of a result -> (the result, its entry)

METHODS = {
    "all_reduce": "allreduce",
    "all_reduce_": "allreduce",
    "all_reduce_coalesced": "allreduce_coalesced",
    "all_reduce_coalesced_": "allreduce_coalesced",
    "broadcast": "broadcast",
    "broadcast_": "broadcast",
    "all_gather_into_tensor": "_allgather_base",
    "all_gather_into_tensor_out": "_allgather_base",
    "all_gather_into_tensor_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_tensor": "_reduce_scatter_base",
    "reduce_scatter_tensor_out": "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor_coalesced",
    # operator -> the method of ProcessGroup that it calls
    "all_to_all_single": "alltoall_base",
}


class StandIn:
    """In an operator's place: a call goes to `heard`, all else is the operator's own."""

    def __init__(self, operator: Any, heard: Callable[..., Any]) -> None:
        self._operator, self._heard = operator, heard

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Hand the call on to `heard`, with the operator."""
        return self._heard(self._operator, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)


def install(note: Note, facts: Facts, waited: Waited) -> Callable[[], None]:
    """Put the stand-ins in place; returns what takes them away.

    `note`, `facts` and `waited` are those of `manyhands.ledger.taps`.
    """
    import torch

    under_way: UnderWay = {}  # until it is waited for
    replaced: list[tuple[Any, str, Any]] = []
    heard: dict[str, Callable[..., Any]] = {
        name: functools.partial(_call, method, under_way, note, facts)
        for name, method in METHODS.items()
    }
    heard["wait_tensor"] = functools.partial(_wait, under_way, waited)
    for space in (torch.ops._c10d_functional, torch.ops._c10d_functional_autograd):
        for name in heard:
            operator = getattr(space, name, None)
            if operator is not None:
                setattr(space, name, StandIn(operator, heard[name]))
                replaced.append((space, name, operator))
    return functools.partial(_put_back, replaced)


def _put_back(replaced: list[tuple[Any, str, Any]]) -> None:
    for space, name, operator in replaced:
        setattr(space, name, operator)


def _call(
    method: str,
    under_way: UnderWay,
    note: Note,
    facts: Facts,
    operator: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    import torch
    from torch.distributed import distributed_c10d

    named = args[-1]
    group = (
        named
        if isinstance(named, torch.distributed.ProcessGroup)
        else (distributed_c10d._resolve_process_group(named))
    )
    given = args[:2] if CALLS[method] == 0 else ([], args[0], None)  # the results are not there yet
    entry = describe(method, group, given, facts(group), torch._C._current_graph_task_id())
    note(entry, given)
    entry.start_s = time.perf_counter()
    result = operator(*args, **kwargs)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if method == "alltoall_base":
        entry.taken, entry.given = cut_bytes(result, args[1]), cut_bytes(args[0], args[2])
    elif CALLS[method] == 1:
        entry.taken = tuple([tensor.numel() * tensor.element_size() for tensor in results])
    for tensor in results:
        under_way[id(tensor)] = tensor, entry
    return result


def _wait(under_way: UnderWay, waited: Waited, operator: Any, tensor: torch.Tensor) -> Any:
    result = operator(tensor)
    _, entry = under_way.pop(id(tensor), (None, None))
    if entry is not None and entry.stop_s is None:
        waited([entry])
    return result
