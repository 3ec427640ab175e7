"""What this rank has started in each of gloo's process groups, in all cells together.

gloo pairs the n-th collective of a group on one rank with the n-th on the others, and the n-th
message with the n-th receive, from cell to cell. So a call that some ranks never joined meets the
calls of a later cell. When a cell ends, each rank sends `facts()`, which are cheap: the number of
its collectives by group, as gloo itself counts them (those of C++ and functional collectives too),
and how many asynchronous calls have no wait yet. Only where these look unfinished does the notebook
ask for `left()`, and `renew()` gives a group new connections where something can never be finished.
"""

from __future__ import annotations

import itertools
import os
import pickle
import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyhands.cluster.on_rank.stack import is_user_file, user_code_in_other_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from torch.distributed import ProcessGroup, Work

    from manyhands.cluster.payloads import Facts, LeftFacts, Note, Spot, TracedCall

    # (send or recv, global rank or None, tag)
    Stream: TypeAlias = tuple[str, int | None, int | None]

LAST_CALLS = 50  # of each group, that are described
# a ProcessGroup keeps one backend of each kind, and these are unused
SPARE_KINDS = ("CUSTOM", "UCC", "MPI", "XCCL")
# asynchronous calls that are remembered: a loop may drop what isend returns each time
MOST_BEGUN = 500
DEPTH = 3  # how deep a work may lie in what a variable holds
MESSAGES = {"send": "send", "recv": "recv", "recv_anysource": "recv"}  # methods of ProcessGroup


@dataclass
class Account:
    """What is counted of one process group.

    That is gloo's operations that are no collectives, its messages, its renewals, and its name in
    torch's flight recorder.
    """

    others: int = 0
    streams: dict[Stream, int] = field(default_factory=dict)  # how many messages
    renewals: int = 0
    trace_name: str = ""


@dataclass
class Begun:
    """An asynchronous call that has not been waited for."""

    work: weakref.ref[Work]
    note: Note
    group: weakref.ref[ProcessGroup]  # of the ProcessGroup
    index: int  # of a message: its place in its stream


class Tally:
    """The accounts of one rank; `install()` has torch.distributed keep them."""

    def __init__(self) -> None:
        self._accounts: weakref.WeakKeyDictionary[ProcessGroup, Account] = (
            weakref.WeakKeyDictionary()
        )
        self._helpers: weakref.WeakSet[ProcessGroup] = weakref.WeakSet()
        self._begun: dict[int, Begun] = {}
        self._numbers = itertools.count()
        # its key in _begun
        self._keys: weakref.WeakKeyDictionary[Work, int] = weakref.WeakKeyDictionary()

    def install(self) -> None:
        """Count what gloo counts among its operations and what is no collective.

        That is messages and monitored_barrier.
        """
        from torch.distributed import ProcessGroup

        if getattr(ProcessGroup.send, "tally", None) is not None:
            return
        for name in (*MESSAGES, "monitored_barrier"):
            setattr(ProcessGroup, name, self._counting(name, getattr(ProcessGroup, name)))

    def _counting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(group: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
            account, before = self._account(group), _operations(group)
            try:
                return original(group, *args, **kwargs)
            finally:
                after = _operations(group)
                if before is not None and after is not None:
                    account.others += after - before
                if name in MESSAGES:
                    stream = self._stream(group, name, args)
                    account.streams[stream] = account.streams.get(stream, 0) + 1

        counted.__name__, counted.__doc__ = name, original.__doc__
        counted.tally = self  # type: ignore[attr-defined]  # `install` looks for it
        return counted

    def _stream(self, group: ProcessGroup, name: str, args: tuple[Any, ...]) -> Stream:
        peer = None if name == "recv_anysource" or len(args) < 3 else _members(group)[args[1]]
        return MESSAGES[name], peer, args[-1] if len(args) > 1 else 0

    def _account(self, group: ProcessGroup) -> Account:
        return self._accounts.setdefault(group, Account())

    # --- asynchronous calls -----------------------------------------------------------------------

    def begin(self, work: Work, note: Note, group: ProcessGroup | None) -> None:
        """A call has returned `work`, and nothing has waited for it yet.

        `group` is None for the world.
        """
        group = group or _c10d().GroupMember.WORLD
        stream = note["call"].lstrip("i"), note.get("peer"), note.get("tag")
        key, index = next(self._numbers), self._account(group).streams.get(stream, 0) - 1
        self._keys[work] = key
        if len(self._begun) >= MOST_BEGUN:
            del self._begun[next(iter(self._begun))]
        self._begun[key] = Begun(weakref.ref(work), note, weakref.ref(group), index)

    def waited(self, work: Work) -> None:
        """Note that the program has waited for this work, which is then no longer under way."""
        self._begun.pop(self._keys.pop(work, -1), None)

    def _forget_ended(self) -> None:
        groups = _c10d()._world.pg_map
        for key, begun in list(self._begun.items()):
            work, group = begun.work(), begun.group()
            if group is None or group not in groups:  # it was destroyed
                del self._begun[key]
                continue
            with suppress(RuntimeError):
                if work is not None and work.is_completed():  # gloo's messages: only after a wait
                    del self._begun[key]

    # --- what the notebook is sent ----------------------------------------------------------------

    def facts(self) -> Facts:
        """The groups of this rank with their numbers of collectives, or {} without a world.

        The result is {"rank", "size", "groups": [[name, members, number of collectives], ...],
        "begun": number}. "begun" is 0 where all asynchronous calls have ended, and grows with each
        new one that has not.
        """
        try:
            return self._facts()
        except Exception:  # noqa: BLE001 - private names of torch, which another version may not have: a cell must go on without them
            return {}

    def _facts(self) -> Facts:
        c10d = _c10d()
        if c10d is None or not c10d.is_initialized():
            return {}
        if self._begun:
            self._forget_ended()
        groups = []
        for group in list(c10d._world.pg_map):
            operations = None if group in self._helpers else _operations(group)
            if operations is not None:
                account = self._accounts.get(group)
                groups.append(
                    [
                        str(group.group_name),
                        _members(group),
                        operations - (account.others if account else 0),
                    ]
                )
        return {
            "rank": c10d.get_rank(),
            "size": c10d.get_world_size(),
            "groups": groups,
            "begun": 1 + max(self._begun, default=-1),
        }

    def list_unfinished(self, variables: dict[str, Any], stacks: bool = False) -> LeftFacts:
        """`facts()`, and what is needed to describe what is unfinished.

        That is the last collectives of each group, with their lines if `stacks`, the messages, the
        names of `variables` that hold works, and whether another thread runs user code.
        """
        facts = self.facts()
        if not facts:
            return {}
        groups = [group for group in _c10d()._world.pg_map if group not in self._helpers]
        entries = _trace(stacks)
        calls = {
            str(group.group_name): _last_calls(
                entries, self._account(group).trace_name or str(group.group_name)
            )
            for group in groups
        }
        streams = [
            [str(group.group_name), *stream, number]
            for group in groups
            for stream, number in self._account(group).streams.items()
        ]
        messages: list[Note] = [
            {
                **begun.note,
                "group": str(group.group_name),
                "index": begun.index,
                "dropped": begun.work() is None,
            }
            for begun in self._begun.values()
            if "tag" in begun.note and (group := begun.group()) is not None
        ]
        # of collectives, torch's flight recorder knows whether they have ended, dropped works too
        self._begun = {
            key: begun
            for key, begun in self._begun.items()
            if begun.work() is not None or "tag" in begun.note
        }
        works = {id(work) for begun in self._begun.values() if (work := begun.work()) is not None}
        return {
            **facts,
            "calls": calls,
            "streams": streams,
            "messages": messages,
            "names": _holders(variables, works),
            "busy": user_code_in_other_threads(),
        }

    def renew(self, groups: Iterable[tuple[str, list[int]]]) -> None:
        """Give process groups of these names, [[name, members], ...], new connections.

        All ranks of the world call it.

        The object stays what it is, so `dist.group.WORLD`, DDP and a variable go on with it. What
        was begun in it can not be finished any more.
        """
        import torch

        c10d, cpu = _c10d(), torch.device("cpu")
        by_name = {
            (str(group.group_name), *_members(group)): group for group in list(c10d._world.pg_map)
        }
        for name, members in groups:
            fresh, group = c10d.new_group(members), by_name.get((name, *members))
            if group is None:
                continue
            account = self._account(group)
            kind = getattr(c10d.ProcessGroup.BackendType, SPARE_KINDS[account.renewals])
            group._register_backend(cpu, kind, fresh._get_backend(cpu))
            self._helpers.add(fresh)
            self._accounts[group] = Account(
                renewals=account.renewals + 1, trace_name=str(fresh.group_name)
            )
            self._begun = {
                key: begun for key, begun in self._begun.items() if begun.group() is not group
            }


def _c10d() -> Any:
    return sys.modules.get("torch.distributed.distributed_c10d")


def _members(group: ProcessGroup) -> list[int]:
    return list(_c10d()._world.pg_group_ranks.get(group) or range(group.size()))


def _operations(group: ProcessGroup) -> int | None:
    """How many operations gloo has been given for this group.

    None where the group is not gloo's.
    """
    import torch

    try:
        backend: Any = group._get_backend(torch.device("cpu"))
        return (
            backend._get_sequence_number_for_group()
            if type(backend).__name__ == "ProcessGroupGloo"
            else None
        )
    except (RuntimeError, AttributeError):
        # no backend for the CPU; an interface that another version may not have
        return None


def _trace(stacks: bool) -> list[dict[str, Any]]:
    """What torch's flight recorder holds.

    With `stacks` its first dump in a process may take a second and 70 MiB.
    """
    try:
        from torch._C._distributed_c10d import _dump_fr_trace

        return pickle.loads(_dump_fr_trace(True, stacks, False))["entries"]
    except (ImportError, TypeError, KeyError, RuntimeError):
        # an interface that another version may not have
        return []


def _last_calls(entries: list[dict[str, Any]], trace_name: str) -> list[TracedCall]:
    """The last collectives of a group, from the entries of the flight recorder, oldest first.

    The result is [{"call", "shape", "dtype", "lines", "ended"}, ...].
    """
    calls: list[TracedCall] = []
    for entry in [record for record in entries if record["process_group"][0] == trace_name][
        -LAST_CALLS:
    ]:
        lines: list[Spot] = [
            {
                "file": os.path.basename(frame["filename"]),
                "path": frame["filename"],
                "line": frame["line"],
                "function": frame["name"],
            }
            for frame in entry.get("frames", [])
            if is_user_file(frame["filename"])
        ]
        sizes, types = entry.get("input_sizes") or [], entry.get("input_dtypes") or [""]
        calls.append(
            {
                "call": entry["profiling_name"].removeprefix("gloo:").lstrip("_"),
                "shape": sizes[0] if sizes else None,
                "dtype": _dtype(types[0]) if sizes else "",
                "lines": lines[::-1],
                "ended": entry["retired"],
            }
        )
    return calls


def _dtype(name: str) -> str:
    return {
        "Float": "float32",
        "Double": "float64",
        "Long": "int64",
        "Int": "int32",
        "Half": "float16",
        "BFloat16": "bfloat16",
        "Byte": "uint8",
        "Char": "int8",
        "Bool": "bool",
    }.get(name, name.lower())


def _holders(variables: dict[str, Any], works: set[int]) -> list[str]:
    """The names of variables that hold unfinished work, and of functions that use such a name.

    The work is one of `works` (by id), or an unfinished functional collective.
    """
    names = {
        name
        for name, value in list(variables.items())
        if not name.startswith("_") and _holds(value, works, DEPTH)
    }
    functions = {
        name: set(code.co_names)
        for name, value in list(variables.items())
        if (code := getattr(value, "__code__", None)) is not None and hasattr(code, "co_names")
    }
    while more := {name for name, used in functions.items() if name not in names and used & names}:
        names |= more
    return sorted(names)


def conditions_hold(conditions: Iterable[tuple[str, bool]], variables: dict[str, Any]) -> bool:
    """Whether each of these conditions holds with these variables.

    `conditions` is [(text, whether it must be true), ...].
    """
    try:
        return all(bool(eval(text, {**variables})) == wanted for text, wanted in conditions)
    except Exception:  # noqa: BLE001 - a name that does not exist yet
        return False


def _holds(value: Any, works: set[int], depth: int) -> bool:
    if id(value) in works or type(value).__name__ in (
        "AsyncCollectiveTensor",
        "_CoalescingManager",
    ):
        return True
    if depth == 0 or isinstance(value, (type, type(sys))):
        return False
    inside: Iterable[Any]
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        inside = value
    else:
        inside = (
            getattr(value, "__dict__", {}).values() if type(value).__module__ == "__main__" else ()
        )
    return any(
        _holds(element, works, depth - 1) for element in list(itertools.islice(inside, 1000))
    )
