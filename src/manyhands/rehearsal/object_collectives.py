"""Calls that send Python's objects: their root, their device, and what the receiver reads.

Also the device of a barrier, which is chosen in the same way.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from manyhands.cluster.on_rank import cpu_groups
from manyhands.rehearsal.call_names import MESSAGES_OF_OBJECTS
from manyhands.rehearsal.trace import CURRENT, ON_CPU

if TYPE_CHECKING:
    from manyhands.rehearsal.trace_recorder import Recorder

_SAYS_CPU = re.compile(r"'cpu(:\d+)?'|([\w.]+\.)?device\((type=)?'cpu(:\d+)?'(, \d+)?\)")


WITH_DEVICE = {*MESSAGES_OF_OBJECTS, "barrier"}


def find_frame(names: Iterable[str]) -> FrameType | None:
    """Find the frame of the send_object_list, recv_object_list or barrier that runs.

    None where none runs; `names` are the functions of torch.distributed that run.
    """
    frame: FrameType | None = sys._getframe(1) if WITH_DEVICE.intersection(names) else None
    while frame is not None and not (
        frame.f_code.co_name in WITH_DEVICE
        and frame.f_code.co_filename.endswith("distributed_c10d.py")
    ):
        frame = frame.f_back
    return frame


def find_root(frame: FrameType) -> int | None:
    """The root that an object collective was given, of its arguments."""
    for name in ("src", "dst", "group_src", "group_dst"):
        if frame.f_locals.get(name) is not None:
            return frame.f_locals[name]
    return None


def find_device(frame: FrameType, library: bool) -> tuple[Any, str]:
    """(the device that a call with objects was given, what to say of it: CURRENT for none).

    A device that is the CPU here is a GPU there, unless the program's call itself says "cpu", and
    no other: then it is ON_CPU.
    """
    is_barrier = frame.f_code.co_name == "barrier"
    given = frame.f_locals.get("device_ids" if is_barrier else "device")
    if given is None:
        return None, CURRENT
    caller = None if library or is_barrier else cpu_groups.user_frame()
    written = cpu_groups.written(caller, "device", 3) if caller else ""
    return given, ON_CPU if _SAYS_CPU.fullmatch(written) else "on a device that is given"


def observe_reads(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `recv_object_list`, which reads the sizes before it can make room for the bytes.

    On a GPU, Python waits there.
    """

    @functools.wraps(original)
    def recv_object_list(*args: Any, **kwargs: Any) -> Any:
        before = len(recorder.events)
        received = original(*args, **kwargs)
        if len(recorder.events) > before and not recorder.events[-1].on_cpu:
            recorder.note("read", call="recv_object_list")
        return received

    return recv_object_list
