"""Groups that the program wants to be gloo's on every machine: `dist.new_group(..., backend="gloo")`.

On a CPU each group is gloo's; that one was asked for by its name is not kept by torch, and a rehearsal has to know it,
of groups too that were made before it began.
"""

import inspect
import linecache
import os
import re
import sys

from manyhands.cluster.on_rank.stack import is_user_file

_LISTENING = re.compile(r"/manyhands/(cluster/on_rank|rehearsal)/")
NAMES = set()  # the groups' names, for the life of the process


def note(group, backend):
    """Called where `new_group` has returned `group`: remember whether the line that calls it says "gloo", and not a
    variable, which would say "nccl" on GPUs. A name can come again after destroy_process_group."""
    if not hasattr(group, "group_name"):  # this rank is no member
        return
    frame = _calling_frame() if backend == "gloo" else None
    if frame is not None and "gloo" in _text_of_call(frame).lower():  # or dist.Backend.GLOO
        NAMES.add(str(group.group_name))
    else:
        NAMES.discard(str(group.group_name))


def user_frame():
    """The innermost frame of what the learner wrote, or None."""
    frame = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _calling_frame():
    """The innermost frame that is neither torch's nor one of those that listen here; or None."""
    frame, torch = sys._getframe(2), os.path.dirname(sys.modules["torch"].__file__) + os.sep
    while frame is not None and (frame.f_code.co_filename.startswith(torch)
                                 or _LISTENING.search(frame.f_code.co_filename)):
        frame = frame.f_back
    return frame


def _text_of_call(frame):
    where = inspect.getframeinfo(frame, context=0).positions
    return "".join(linecache.getline(frame.f_code.co_filename, line)
                   for line in range(where.lineno, (where.end_lineno or where.lineno) + 1))
