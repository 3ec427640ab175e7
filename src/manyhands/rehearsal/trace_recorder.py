"""The recorder of one rank: what the rank asks of torch.distributed becomes a trace.

The trace is one `Event` after the other.

It listens where the ledger does (`manyhands.ledger.taps`): at the methods of ProcessGroup, at
torch's dispatcher and at functional collectives, so that DistributedDataParallel, FSDP and DTensor
are heard too, by whatever name a function was imported. The name that the program called (isend or
send, one of the object collectives, batch_isend_irecv) is read from the stack. While nothing
is recorded, none of this is in place.

What it assumes, because a CPU cannot show it:
* a group of backend gloo is taken as one of NCCL, as a GPU would have it, but for a `new_group` that names "gloo" where
  it is called: such a group is meant for the CPU. On a rank of a cluster that is known of earlier groups too;
* what C++ calls and waits for by itself (DDP's reducer, DTensor) is taken as done in order, on the current stream.
Our own messages (`manyhands.comm`) choose NCCL's or gloo's way by themselves, and are not recorded.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from manyhands import gpu_stand_in
from manyhands.cluster.on_rank import cpu_groups
from manyhands.cluster.on_rank.recorder import same_memory
from manyhands.cluster.on_rank.stack import is_user_file
from manyhands.ledger import taps
from manyhands.ledger.entry import CALLS, tensors_in
from manyhands.rehearsal import gloo_errors, object_collectives
from manyhands.rehearsal.call_names import (
    BATCH,
    CPU_WAITS,
    FILLS_A_LIST,
    FUNCTION_OF_METHOD,
    MESSAGES,
    MESSAGES_OF_OBJECTS,
    OBJECTS,
    ROOTED,
)
from manyhands.rehearsal.gpu_choice import GpuChoice
from manyhands.rehearsal.group_watch import watch_groups
from manyhands.rehearsal.tensor_uses import Clocks, Reads, TensorUses
from manyhands.rehearsal.trace import (
    CPU_TENSOR,
    CURRENT,
    NO_ANSWER,
    ON_CPU,
    REPEATED,
    Event,
    Layout,
    Part,
)
from manyhands.rehearsal.work_handles import backend_of, observe_batches, observe_completed

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from manyhands.ledger.entry import Entry

# where a function of torch.distributed begins: itself, what torch has put around it, and what
# listens here
_CALLED = re.compile(
    r"/(distributed_c10d|c10d_logger|typing_extensions|warnings)\.py$|/manyhands/(rehearsal|ledger)/"
)


class Recorder:
    """Records between `start` and `stop` into `events`, this rank's trace.

    `heard`, if given, is called with each event when it is complete. Each rank has its own;
    starting it is no communication. The program's errors pass through it unchanged. `gpu_chosen`:
    the current GPU is already this rank's.
    """

    def __init__(
        self, heard: Callable[[Event], object] | None = None, gpu_chosen: bool = False
    ) -> None:
        self.events: list[Event] = []
        self.log = self  # the taps append to a listener's log: see `append`
        self._heard = heard
        self._events_of: dict[Entry, int] = {}  # entry of an asynchronous call -> its number
        self._frame: FrameType | None = None  # the last c10d frame
        self._uses = TensorUses(self)
        self._undo: list[Callable[[], object]] = []
        self.gpu = GpuChoice(gpu_chosen)
        self._error: Event | None = None  # an error that the program has yet to catch: its event
        # init_process_group is written with "gloo", and no choice: so no GPU is meant
        self.barriers_by_gloo = False
        # the groups that have gloo, too, as of "cpu:gloo,cuda:nccl": objects go by it
        self.with_cpu: set[str] = set()

    def start(self) -> None:
        """Begin to record: listen to the taps and replace torch's functions until `stop`."""
        taps.listen(self)
        self._undo = [
            *watch_groups(self),
            *_watch_works(self),
            *Reads(self).undo,
            *Clocks(self).undo,
            *self._uses.watch(),
            *self.gpu.watch(),
        ]

    def stop(self) -> list[Event]:
        """End the recording; returns the trace."""
        while self._undo:
            self._undo.pop()()
        taps.leave(self)
        self._flush_error()
        self._frame = None  # and with it what its variables hold
        return self.events

    # --- what the taps report ---------------------------------------------------------------------

    def add(self, entry: Entry, given: Sequence[Any]) -> None:
        """A call begins."""
        names, frame, library = _c10d_names()
        # another part of the same batch or object collective
        if frame is not None and frame is self._frame:
            self._follow(entry, len(self.events) - 1)
            return
        self._frame = None
        facts: dict[str, Any] = {
            "group": entry.group,
            "ranks": entry.ranks,
            "library": library,
            "backend": "gloo" if entry.group in cpu_groups.NAMES else "nccl",
        }
        outer = next((name for name in names if name in OBJECTS or name == BATCH), None)
        with_device = frame if outer in OBJECTS else object_collectives.find_frame(names)
        if with_device:
            device, facts["text"] = object_collectives.find_device(with_device, library)
            if entry.group in self.with_cpu and (device is None or facts["text"] == ON_CPU):
                facts.update(backend="gloo", text="")
            elif facts["text"] == CURRENT and (
                self.gpu.is_made() or ("barrier" in names and self.barriers_by_gloo)
            ):
                facts["text"] = ""
        if outer:
            self._frame = frame
        if outer == BATCH and frame is not None:
            operations = frame.f_locals["p2p_op_list"]
            parts = tuple(
                _part(operation.op.__name__, operation.tensor, operation.peer, operation.tag)
                for operation in operations
            )
            number = self.note("message", call=BATCH, parts=parts, is_async=True, **facts)
            for operation in () if library else operations:
                self._uses.begin_operation(
                    operation.tensor, number, written=operation.op.__name__ == "irecv"
                )
        elif outer and frame is not None:
            number = self.note(
                "collective", call=outer, root=object_collectives.find_root(frame), **facts
            )
        elif entry.call in ("send", "recv"):
            self._message(entry, given, names, facts)
            number = len(self.events) - 1
        else:
            self._collective(entry, given, names, facts)
            number = len(self.events) - 1
        self._follow(entry, number)

    def append(self, event: Sequence[Any]) -> None:
        """Take an event of the taps' log, of which only the waits are new.

        `add` has heard of the beginnings.
        """
        if event[0] != "wait":
            return
        number = self._events_of.pop(event[1], None)
        if number is not None:
            self._events_of = {
                entry: other for entry, other in self._events_of.items() if other != number
            }
            self._uses.end_operation(number)
            self.note("wait", of=number)

    def _follow(self, entry: Entry, number: int) -> None:
        if self.events[number].is_async:
            self._events_of[entry] = number

    def _message(
        self, entry: Entry, given: Sequence[Any], names: Sequence[str], facts: dict[str, Any]
    ) -> None:
        call = next(
            (name for name in names if name in (*MESSAGES, *MESSAGES_OF_OBJECTS)), entry.call
        )
        tensor = given[0][0] if isinstance(given[0], (list, tuple)) else given[0]
        peer = None if entry.peer < 0 else entry.ranks[entry.peer]
        is_async = (not names or call in ("isend", "irecv")) and not entry.native
        number = self.note(
            "message",
            call=call,
            parts=(_part(entry.call, tensor, peer, entry.tag),),
            is_async=is_async,
            **facts,
        )
        if is_async and not facts["library"]:
            self._uses.begin_operation(tensor, number, written=entry.call == "recv")

    def _collective(
        self, entry: Entry, given: Sequence[Any], names: Sequence[str], facts: dict[str, Any]
    ) -> None:
        place = CALLS[entry.call]
        handed_in = [] if place is None else tensors_in(given[place])
        filled = tensors_in(given[0]) if place == 1 else []
        options = given[-1] if given else None
        if entry.call in FILLS_A_LIST and same_memory(filled):
            facts["text"] = REPEATED
        elif (
            not facts["library"]
            and entry.group not in self.with_cpu
            and any(
                # torch moves by itself what it is given
                map(gpu_stand_in.is_refused_by_nccl, handed_in + filled)
            )
        ):
            facts["text"] = CPU_TENSOR
        waited_for = entry.native or "_functional_collectives" in names
        is_async = (
            not waited_for
            and bool(getattr(options, "asyncOp", True))
            and entry.call != "monitored_barrier"
        )
        number = self.note(
            "collective",
            call=FUNCTION_OF_METHOD.get(entry.call, entry.call),
            op=_operation(options),
            tensors=tuple(_layout(tensor) for tensor in handed_in + filled),
            root=entry.root if entry.call in ROOTED else None,
            is_async=is_async,
            gpu=self.gpu.number_of(handed_in + filled, entry.native),
            **facts,
        )
        if is_async and not facts["library"]:
            for tensor in handed_in:
                self._uses.begin_operation(tensor, number, written=place == 0)
            for tensor in filled:
                self._uses.begin_operation(tensor, number, written=True)

    # --- events -----------------------------------------------------------------------------------

    def note(self, kind: str, **facts: Any) -> int:
        """Add an event at the program's line that is running; returns its number."""
        self._flush_error()
        return self._append(_event(kind, **facts))

    def note_error(self, **facts: Any) -> None:
        """Note that a call raises.

        It is an event when the program goes on after it, so once it was caught.
        """
        self._error = _event("error", **facts)

    def _flush_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            self._append(error)

    def _append(self, event: Event) -> int:
        self.events.append(event)
        if self._heard:
            self._heard(event)
        return len(self.events) - 1


def _event(kind: str, **facts: Any) -> Event:
    frame = cpu_groups.user_frame()
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)
    return Event(kind, file=file, line=line, **facts)


def _c10d_names() -> tuple[list[str], FrameType | None, bool]:
    """Return what of torch.distributed is running, as the stack shows.

    (names of its functions, the outermost first; the frame of the one that is a batch or an object
    collective, or None; whether another package called them, and not the program).
    """
    names: list[str] = []
    caller: FrameType | None = None
    frame: FrameType | None = sys._getframe(2)
    outermost = ""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        code = frame.f_code
        outermost = code.co_filename
        if code.co_filename.endswith("distributed_c10d.py"):
            names.append(code.co_name)
            if code.co_name in OBJECTS or code.co_name == BATCH:
                caller = frame
        elif code.co_filename.endswith("_functional_collectives.py"):
            names.append("_functional_collectives")
        frame = frame.f_back
    return names[::-1], caller, _CALLED.search(outermost) is None


def _part(call: str, tensor: torch.Tensor, peer: int | None, tag: int | None) -> Part:
    return Part(call.removeprefix("i"), peer, tag or 0, _layout(tensor))


def _layout(tensor: torch.Tensor) -> Layout:
    from torch._prims_common import suggest_memory_format

    sparse = tensor.layout not in _strided()
    contiguous = sparse or tensor.is_contiguous()
    channels_last = not contiguous and tensor.is_contiguous(
        memory_format=suggest_memory_format(tensor)
    )
    return Layout(
        str(tensor.dtype).removeprefix("torch."),
        tuple(tensor.shape),
        tensor.device.type,
        contiguous,
        contiguous or _dense(tensor),
        sparse,
        channels_last,
    )


def _dense(tensor: torch.Tensor) -> bool:
    """Whether the numbers fill a piece of memory without gaps and overlaps.

    The dimensions may be in any order.
    """
    filled = 1
    for stride, size in sorted(
        (stride, size)
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        if size > 1
    ):
        if stride != filled:
            return False
        filled *= size
    return True


@functools.cache
def _strided() -> tuple[torch.layout, ...]:
    import torch

    return torch.strided, torch._mkldnn  # type: ignore[attr-defined]  # torch does not declare it


def _operation(options: Any) -> str | None:
    """ "SUM" or another, where the options of a call name one."""
    if isinstance(options, str):  # of a functional collective
        return {"product": "PRODUCT"}.get(options, options.upper())
    operation = getattr(options, "reduceOp", None)
    return (
        None
        if operation is None
        else str(getattr(operation, "op", operation)).rpartition(".")[2].split(":")[0]
    )


def _watch_works(recorder: Recorder) -> list[Callable[[], object]]:
    """Observe errors of communication, futures, and what a batch returns.

    The program may catch such errors. Returns how to undo it.
    """
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    undo: list[Callable[[], object]] = []
    # not isend and irecv: a P2POp asks whether it is given these two, and a cell may have imported
    # them before
    for name in (
        "send",
        "recv",
        *MESSAGES_OF_OBJECTS,
        *FUNCTION_OF_METHOD.values(),
        *ROOTED,
        *CPU_WAITS,
        BATCH,
        "monitored_barrier",
    ):
        original = getattr(c10d, name, None)
        if original is not None:
            if name == BATCH:
                original = observe_batches(recorder, original)
            elif name == "recv_object_list":
                original = object_collectives.observe_reads(recorder, original)
            wrapped = _wrap_noting_errors(recorder, name, original)
            for module in (c10d, dist):
                undo.append(functools.partial(setattr, module, name, getattr(module, name)))
                setattr(module, name, wrapped)
    for name, made in (
        ("wait", _wrap_noting_errors(recorder, "wait", dist.Work.wait)),
        ("get_future", _wrap_get_future(recorder)),
        ("is_completed", observe_completed()),
    ):
        undo.append(functools.partial(setattr, dist.Work, name, getattr(dist.Work, name)))
        setattr(dist.Work, name, made)
    return undo[::-1]


def _wrap_get_future(recorder: Recorder) -> Callable[[dist.Work], Any]:
    """Wrap `Work.get_future`: a program that takes the future waits by it, as DDP does."""
    import torch.distributed as dist

    original = dist.Work.get_future

    @functools.wraps(original)
    def get_future(work: dist.Work) -> Any:
        if sys._getframe(1).f_code.co_filename != taps.__file__:
            taps.mark_waited(work)
        return original(work)

    return get_future


def _wrap_noting_errors(
    recorder: Recorder, name: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except RuntimeError as error:
            if is_user_file(sys._getframe(1).f_code.co_filename):
                text = (
                    NO_ANSWER if gloo_errors.NO_ANSWER.search(str(error)) else type(error).__name__
                )
                recorder.note_error(call=name, text=text, backend=backend_of(kwargs.get("group")))
            raise

    return call
