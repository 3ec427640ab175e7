"""Find and end the processes that a notebook leaves behind."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable

_PR_SET_CHILD_SUBREAPER = 36
_lock = threading.Lock()
_adopting = 0


def adopt_orphans() -> None:
    """Let a grandchild whose parent dies become a child of this process.

    So it can be found. Only Linux can do that.
    """
    _count(+1)


def release_orphans() -> None:
    """Undo one `adopt_orphans`: once all are undone, orphans go where they always went."""
    _count(-1)


def _count(step: int) -> None:
    global _adopting
    with _lock:
        _adopting = max(0, _adopting + step)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(_adopting > 0), 0, 0, 0)


def children() -> list[psutil.Process]:
    """All processes below this one."""
    return psutil.Process().children(recursive=True)


def end(processes: Iterable[psutil.Process], timeout_s: float = 5) -> list[psutil.Process]:
    """Kill these processes and wait until they are gone, for `timeout_s` at most.

    Returns those that were still running.
    """
    processes, running = list(processes), []
    for process in processes:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
            process.kill()
        except psutil.NoSuchProcess:
            pass
    until = time.monotonic() + timeout_s
    while any([_is_there(process) for process in processes]) and time.monotonic() < until:  # noqa: C419 - collects each of them
        time.sleep(0.01)
    return running


def _is_there(process: psutil.Process) -> bool:
    """Whether the process still has an entry; that of a dead child of ours is collected."""
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return process.is_running()
