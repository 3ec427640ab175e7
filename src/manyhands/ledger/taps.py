"""Where the ledgers listen: while one is open, and at no other time.

* our own messages: `manyhands.comm.observers`;
* what Python calls: the methods of `ProcessGroup`, below the functions of `torch.distributed`, so
  by whatever name those were imported;
* what C++ calls (DistributedDataParallel's reducer, its broadcasts): torch's dispatcher, through
  which each collective goes. A Python kernel for the dispatch key Autograd notes the call and hands
  it on. Calls that a method above has noted skip that key. So do C++ calls in inference mode: these
  are not seen;
* torch's functional collectives, DTensor's among them: `manyhands.ledger.functional_taps`;
* `Work.wait`, to know which call was waited for before the next one.

When the last ledger is closed, all is as it was before the first.
"""

from __future__ import annotations

import _thread
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from manyhands.ledger import functional_taps
from manyhands.ledger.entry import CALLS, describe

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup, Work

    from manyhands.ledger.entry import Entry, Group


class Appended(Protocol):
    """A list, or what takes part of one."""

    def append(self, item: tuple[Any, ...], /) -> object:
        """Called with each item of a log; see `account.Log`."""


class Listener(Protocol):
    """A ledger, or who else listens."""

    @property
    def log(self) -> Appended:
        """What every event is appended to; see `account.Log`."""

    def add(self, entry: Entry, given: Sequence[Any]) -> None:
        """Called with each call of torch.distributed and its arguments."""


_open: list[Listener] = []  # who listens now
_undo: list[Callable[[], object]] = []  # how to take the taps away
_works: WeakKeyDictionary[Work, list[Entry]] = WeakKeyDictionary()
_groups: WeakKeyDictionary[ProcessGroup, Group] = WeakKeyDictionary()
# entry -> the future of its work, until a thread has noted its end
_flying: dict[Entry, torch.futures.Future[Any]] = {}
_joining: dict[str, list[Entry]] = {}  # name of a group -> its entries since _start_coalescing


def listen(ledger: Listener) -> None:
    """Add a ledger to those that hear of calls; the first one puts the taps in place."""
    if not _open:
        _install()
    _open.append(ledger)


def leave(ledger: Listener) -> None:
    """Remove a ledger from those that hear of calls; the last one takes the taps away."""
    _land()
    _open.remove(ledger)
    if not _open:
        _remove()


def _install() -> None:
    from manyhands.comm import observers

    observers.append(_message)
    _undo.append(lambda: observers.remove(_message))
    try:
        from torch.distributed import ProcessGroup, Work
    except ImportError:  # a torch without torch.distributed: only our own messages
        return
    for call in CALLS:
        _replace(ProcessGroup, call, functools.partial(_noting, call))
    _replace(ProcessGroup, "_start_coalescing", _starting)
    _replace(ProcessGroup, "_end_coalescing", _ending)
    _replace(Work, "wait", _waiting)
    _undo.append(_native_taps())
    _undo.append(functional_taps.install(_note, _facts, _waited))


def _remove() -> None:
    while _undo:
        _undo.pop()()
    for table in (_works, _groups, _joining):
        table.clear()


def _replace(owner: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
    # not getattr: that unbinds the method, and it could not be put back
    original = vars(owner).get(name)
    if original is not None:
        setattr(owner, name, wrapped(getattr(owner, name)))
        _undo.append(lambda: setattr(owner, name, original))


def _message(
    kind: str, peer: int, nbytes: int, call: str, seconds: float, identity: tuple[Any, ...]
) -> None:
    """The observer of our own messages."""
    event = (kind, peer, nbytes, call, seconds, identity)
    for ledger in _open:
        ledger.log.append(event)


def _note(entry: Entry, given: Sequence[Any]) -> None:
    """Tell all of a call; `given` are its arguments, the group left out."""
    for ledger in _open:
        ledger.log.append(("start", entry))
        ledger.add(entry, given)


def _facts(group: ProcessGroup) -> Group:
    """The group's name, its global ranks, this rank's global number."""
    facts = _groups.get(group)
    if facts is None:
        import torch.distributed as dist

        try:
            ranks = tuple(dist.get_process_group_ranks(group))
        except (KeyError, ValueError, RuntimeError):  # made by hand, unknown to torch.distributed
            ranks = tuple(range(group.size()))
        facts = _groups[group] = (str(group.group_name), ranks, ranks[group.rank()])
    return facts


# --- calls from Python ----------------------------------------------------------------------------


def _noting(call: str, original: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    below, task = torch._C._AutoDispatchBelowAutograd, torch._C._current_graph_task_id

    @functools.wraps(original)
    def noted(group: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if kwargs else args
        entry = describe(call, group, given, _facts(group), task())
        _note(entry, given)
        entry.start_s = time.perf_counter()
        with below():
            work = original(group, *args, **kwargs)
        _follow(work, entry, waits=not getattr(given[-1] if given else None, "asyncOp", True))
        return work

    return noted


def _follow(work: Work | None, entry: Entry, waits: bool) -> None:
    """Remember whose work this is, and have its end noted, unless the caller waits immediately."""
    # it has ended (monitored_barrier), or is joined with others until _end_coalescing
    if work is None:
        if entry.group not in _joining:
            entry.stop_s = time.perf_counter()
            _waited([entry])
    else:
        _works[work] = [entry]
        if not waits and entry.call not in ("send", "recv", "barrier"):  # those have no future
            _note_end(work, entry)
    if entry.group in _joining:
        _joining[entry.group].append(entry)


def _note_end(work: Work, entry: Entry) -> None:
    """Have a thread of ours wait for the end of a work.

    No callback of its future: that one runs on gloo's thread and needs the GIL. Who lets go of a
    group's last reference (of DistributedDataParallel after `destroy_process_group`) holds the GIL
    and waits for that thread: a deadlock.
    """
    try:
        future = work.get_future()
    except (RuntimeError, AttributeError):  # a backend without futures: the wait will tell
        return
    if future.done():  # NCCL's are, from the start: the GPU's stream waits, and not Python
        entry.stop_s = time.perf_counter()
        return
    _flying[entry] = future
    _thread.start_new_thread(_wait_for_end, (future, entry))


def _wait_for_end(future: torch.futures.Future[Any], entry: Entry) -> None:
    try:  # noqa: SIM105 - suppress would be one more frame of each wait
        future.wait()
    except Exception:  # noqa: BLE001 - who waits for the work is told of its error
        pass
    entry.stop_s = time.perf_counter()
    _flying.pop(entry, None)


def _land() -> None:
    """Wait for the threads whose work has ended: they have a line or two to go."""
    while any(future.done() for future in list(_flying.values())):
        time.sleep(0.0002)


def mark_waited(work: Work) -> None:
    """Somebody waits for this work by another way than its `wait`."""
    _waited(_works.pop(work, []))


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(work: Work, *args: Any, **kwargs: Any) -> Any:
        result = original(work, *args, **kwargs)
        entries = _works.pop(work, None)
        if entries is not None:
            if entries[0].call == "recv" and entries[0].peer < 0:
                entries[0].peer = work._source_rank()
            _waited(entries)
        return result

    return wait


def _waited(entries: Sequence[Entry]) -> None:
    now = time.perf_counter()
    for entry in entries:
        if entry.stop_s is None:
            entry.stop_s = now
        for ledger in _open:
            ledger.log.append(("wait", entry))


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(group: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        _joining[_facts(group)[0]] = []
        return original(group, *args, **kwargs)

    return start


def _ending(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def end(group: ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        work, entries = original(group, *args, **kwargs), _joining.pop(_facts(group)[0], [])
        if work is not None and entries:
            _works[work] = entries
        return work

    return end


# --- calls from C++ -------------------------------------------------------------------------------


def _native_taps() -> Callable[[], None]:
    """Kernels in front of the c10d operators. Returns what takes them away."""
    import torch

    library = torch.library.Library("c10d", "IMPL")
    for name, kernel in _kernels().items():
        library.impl(name, kernel, "Autograd", with_keyset=True)
    return library._destroy


@functools.cache
def _kernels() -> dict[str, Callable[..., Any]]:
    """{operator: kernel} for those calls that there are operators of."""
    import torch

    known, kernels = {schema.name for schema in torch._C._jit_get_all_schemas()}, {}
    for call in CALLS:
        for name in ("recv_any_source_",) if call == "recv_anysource" else (call + "_", call):
            if f"c10d::{name}" in known:
                kernels[name] = _native(getattr(torch.ops.c10d, name).default, call)
    return kernels


def _native(operator: Any, call: str) -> Callable[..., Any]:
    import torch
    from torch.distributed import ProcessGroup

    below, task = torch._C._after_autograd_keyset, torch._C._current_graph_task_id
    place = [argument.name for argument in operator._schema.arguments].index("process_group")

    def seen(keyset: torch._C.DispatchKeySet, *args: Any) -> Any:
        group = ProcessGroup.unbox(args[place])
        given = [
            argument
            for argument in args[:place] + args[place + 1 :]
            if not isinstance(argument, torch.ScriptObject)
        ]
        entry = describe(call, group, given, _facts(group), task(), native=True)
        _note(entry, given)
        entry.start_s = time.perf_counter()
        result = operator.redispatch(keyset & below, *args)
        _native_end(result, entry)
        return result

    return seen


def _native_end(result: Any, entry: Entry) -> None:
    from torch.distributed import Work

    last = result[-1] if isinstance(result, (tuple, list)) else result
    try:  # noqa: SIM105 - quicker, in each call
        _note_end(Work.unbox(last), entry)
    except (RuntimeError, TypeError, AttributeError):  # nothing to follow
        pass
