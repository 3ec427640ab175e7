"""The trace: what one rank asked of torch.distributed, one event after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from manyhands.rehearsal.call_names import BATCH, CPU_WAITS

KINDS = ("collective", "message", "wait", "read", "clock", "early", "error", "group", "works")
# of objects and barriers; CURRENT: which was not chosen
ON_CPU, CURRENT = "on the CPU", "on the current device"
REPEATED = "into the same tensor several times"  # of a call that fills one tensor for each rank
CPU_TENSOR = "a tensor that was made on the CPU"
NO_ANSWER = "an error for want of an answer"  # a time-out, or a connection that was lost


class BadTraceError(ValueError):
    """A trace that says something that cannot be; the message names the event and what to do."""


@dataclass(frozen=True)
class Layout:
    """A tensor as far as NCCL is concerned: its type, shape, device and layout in memory.

    For example dtype "float32" and device "cpu" or "cuda".

    `dense`: its elements fill their memory without gaps or overlaps, in whatever order; each
    contiguous tensor does. `channels_last`: it is not contiguous, but would be with its channels as
    the last dimension.
    """

    dtype: str = "float32"
    shape: tuple[int, ...] = (1,)
    device: str = "cpu"
    contiguous: bool = True
    dense: bool = True
    sparse: bool = False
    channels_last: bool = False

    @property
    def numel(self) -> int:
        """The number of elements."""
        number = 1
        for size in self.shape:
            number *= size
        return number

    @property
    def bytes(self) -> int:
        """The bytes of all elements together; a bool has one."""
        bits = re.search(r"\d+", self.dtype)  # of bool there are none in its name
        return self.numel * max(1, int(bits[0]) // 8 if bits else 1)


@dataclass(frozen=True)
class Part:
    """One message: way "send" or "recv", the peer, its tag and tensor.

    `peer` is the other side's global rank (None: any).
    """

    way: str
    peer: int | None
    tag: int = 0
    tensor: Layout = Layout()


@dataclass(frozen=True)
class Event:
    """One thing that a rank did.

    `kind`, one of `KINDS`:
      * "collective": `call` on `group` with `tensors`, reduction `op`, `root`;
      * "message": send, recv, isend, irecv, those of objects (one part), or batch_isend_irecv (several);
      * "wait": for the event number `of` of this rank's trace, counted from 0;
      * "read": Python needs a value of a tensor that is on the GPU (`item`, `tolist`, `print`);
      * "clock": the program reads a clock;
      * "early": a tensor of event `of` is used before its wait, as `text` says;
      * "error": an error of a call that the program caught, its type or NO_ANSWER in `text`;
      * "group": new_group was called for the ranks in `text`;
      * "works": of what a batch returned, another work than the first is taken.

    Of objects and barriers `text` says on which device they travel (CURRENT: on the current one,
    and the program has not chosen it); of a collective, whether it fills one tensor several times
    (REPEATED), or takes one that was made on the CPU (CPU_TENSOR). `group` is the group's name,
    `ranks` its global ranks; one of backend "gloo" is a CPU group, which NCCL has nothing to do
    with. `is_async`: Python got the work immediately (`async_op=True`, isend, irecv, a batch).
    `library`: torch itself or another package made the call, and sees to its wait. `gpu`: the
    number of the GPU that its tensors are on, where that is known.
    """

    kind: str
    call: str = ""
    group: str = "0"
    ranks: tuple[int, ...] = ()
    backend: str = "nccl"
    parts: tuple[Part, ...] = ()
    tensors: tuple[Layout, ...] = ()
    op: str | None = None
    root: int | None = None
    is_async: bool = False
    library: bool = False
    of: int | None = None
    file: str = ""
    line: int = 0
    text: str = ""
    gpu: int | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether the call is on a group of the CPU, with which NCCL has nothing to do."""
        return self.backend == "gloo"

    @property
    def is_batch(self) -> bool:
        """Whether the call is batch_isend_irecv, whose messages begin together."""
        return self.call == BATCH

    @property
    def waits_for_gpu(self) -> bool:
        """Whether Python goes on only when the GPU has done what was queued so far."""
        return self.kind == "read" or (self.kind == "collective" and self.call in CPU_WAITS)


Traces = Mapping[int, Sequence[Event]]  # of all ranks, by global rank


def dump(events: Iterable[Event]) -> str:
    """The trace of one rank as text, one JSON object a line; what is as usual is left out."""
    usual = {field.name: field.default for field in fields(Event)}
    return "".join(
        json.dumps({k: v for k, v in asdict(event).items() if k == "kind" or v != usual[k]}) + "\n"
        for event in events
    )


def load(text: str) -> list[Event]:
    """`[Event, ...]` from what `dump` wrote.

    A last line that was cut off (its process was ended) is left out.
    """
    lines = text.split("\n")
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            events.append(_event(json.loads(line)))
        except (ValueError, TypeError, KeyError) as problem:
            if number == len(lines):
                break
            raise BadTraceError(
                f"line {number} of the trace is no event ({problem}): record the trace anew"
            ) from None
    return events


def check(traces: Traces) -> None:
    """Raise `BadTraceError` if the traces, {rank: [Event, ...]}, do not belong together."""
    for rank, events in traces.items():
        for number, event in enumerate(events):
            where = f"event {number} of rank {rank}"
            if event.kind not in KINDS:
                raise BadTraceError(
                    f"{where} is of kind {event.kind!r}: it can be {', '.join(KINDS)}"
                )
            if event.kind in ("collective", "message") and rank not in event.ranks:
                raise BadTraceError(
                    f"{where}, {event.call}, is on a group of ranks {event.ranks}, and {rank} is "
                    "none of them: put the traces under the ranks that made them"
                )
            if event.kind == "message" and not event.parts:
                raise BadTraceError(
                    f"{where}, {event.call}, has no message in it: give it its parts"
                )
            if event.kind == "wait" and not (event.of is not None and 0 <= event.of < number):
                raise BadTraceError(
                    f"{where} waits for event {event.of}: it can wait for an earlier one only"
                )


def _event(given: dict[str, Any]) -> Event:
    parts = tuple(
        Part(**{**part, "tensor": _layout(part["tensor"])}) for part in given.pop("parts", ())
    )
    tensors = tuple(_layout(tensor) for tensor in given.pop("tensors", ()))
    return Event(
        **{**given, "ranks": tuple(given.get("ranks", ())), "parts": parts, "tensors": tensors}
    )


def _layout(given: dict[str, Any]) -> Layout:
    return Layout(**{**given, "shape": tuple(given["shape"])})
