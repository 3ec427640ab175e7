"""Groups that the program wants to be gloo's on every machine.

They are made by `dist.new_group(..., backend="gloo")`. On a CPU each group is gloo's. torch does
not keep which one was asked for by its name, and a rehearsal has to know it, of groups too that
were made before it began.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING

from manyhands.cluster.on_rank.running_call import text_of_running_call
from manyhands.cluster.on_rank.stack import is_user_file

if TYPE_CHECKING:
    from types import FrameType

    from torch.distributed import ProcessGroup

_LISTENING = re.compile(r"/manyhands/(cluster/on_rank|rehearsal)/")
NAMES: set[str] = set()  # the groups' names, for the life of the process


def note(group: ProcessGroup | int, backend: str | None) -> None:
    """Remember whether the call that has made `group` says "gloo".

    It is called where `new_group` has returned `group`. A variable or a choice does not count,
    because it would say "nccl" on GPUs. A name can come again after destroy_process_group.
    """
    if not hasattr(group, "group_name"):  # this rank is no member
        return
    frame = _calling_frame() if backend == "gloo" else None
    if frame is not None and "gloo" in written(frame, "backend", 2).lower():  # or dist.Backend.GLOO
        NAMES.add(str(group.group_name))
    else:
        NAMES.discard(str(group.group_name))


def user_frame() -> FrameType | None:
    """The innermost frame of what the learner wrote, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _calling_frame() -> FrameType | None:
    """The innermost frame that is neither torch's nor one of those that listen here; or None."""
    frame: FrameType | None = sys._getframe(2)
    torch = os.path.dirname(sys.modules["torch"].__file__ or "") + os.sep
    while frame is not None and (
        frame.f_code.co_filename.startswith(torch) or _LISTENING.search(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return frame


def written(frame: FrameType, name: str, place: int) -> str:
    """How an argument is written in the call where `frame` is, with strings in single quotes.

    It is the one of this name, or at this place. "" where there is none, where it is a choice (`a
    if gpu else b`, `a or b`), or nothing is known.
    """
    try:
        call = ast.parse(f"({text_of_running_call(frame) or ''})", mode="eval").body
    except SyntaxError:
        return ""
    named = [argument.value for argument in getattr(call, "keywords", ()) if argument.arg == name]
    values = (
        named
        or [
            argument
            for argument in getattr(call, "args", ())[: place + 1]
            if not isinstance(argument, ast.Starred)
        ][place:]
    )
    if not values or any(isinstance(part, (ast.IfExp, ast.BoolOp)) for part in ast.walk(values[0])):
        return ""
    return ast.unparse(values[0])
