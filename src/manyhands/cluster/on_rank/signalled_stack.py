"""The stacks of a rank that cannot report, because C++ in it holds Python's lock.

It writes them down on a signal.

Python's faulthandler does that without the lock, and needs no right to look into a different
process. It reads the frames as they are, and while a thread runs they may be half made: a signal to
a rank at work has ended its process (SIGSEGV, seen with Python 3.13). So only a process that rests
gets the signal.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING

from manyhands.cluster.on_rank.stack import (
    IDLE_SHARE,
    communication_name,
    innermost_of,
    is_user_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from manyhands.cluster.payloads import Note, Spot, Stand

# one that scripts do not use: SIGUSR1 and SIGUSR2 are what Slurm and submitit send to have a
# checkpoint written
SIGNAL = signal.SIGRTMAX - 5 if hasattr(signal, "SIGRTMAX") else signal.SIGUSR2
ANSWER_S = 0.5
GLANCES, GLANCE_S = 5, 0.02  # a process that rests may run for a moment
_THREAD = re.compile(r"^(?:Current t|T)hread 0x([0-9a-f]+)", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
_kept: list[TextIO] = []  # the file, which must stay open


def write_on_signal(path: str) -> None:
    """On the rank: have each signal append the stacks of all threads to the file `path`."""
    _kept[:] = [open(path, "w")]  # noqa: SIM115 - kept open
    _kept[0].write(f"{os.getpid()} {threading.main_thread().ident:x}\n")
    _kept[0].flush()
    faulthandler.register(SIGNAL, file=_kept[0], all_threads=True)


def processor_s(pid: int) -> float:
    """The processor time so far, in seconds, of a process whose main thread rests.

    OSError if it runs, or if the process has ended.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        for _ in range(GLANCES):
            if process.status() != psutil.STATUS_RUNNING:  # it runs, or waits for a core
                times = process.cpu_times()
                return times.user + times.system
            time.sleep(GLANCE_S)
    except psutil.Error as gone:
        raise ProcessLookupError(str(gone)) from None
    raise BlockingIOError(f"process {pid} is at work")


class ScriptStacks:
    """Looks at the ranks of a script that runs on this machine.

    Each of them has called `write_on_signal` for the file `stacks-RANK` of a folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stacks: dict[int, SignalledStack] = {}

    def look(self, rank: int) -> Stand | None:
        """See `SignalledStack.look`; None where the rank has not begun, or has ended."""
        if rank not in self._stacks:
            pid = self._pid(rank)
            if pid is None:
                return None
            send, cpu_s = (
                functools.partial(os.kill, pid, SIGNAL),
                functools.partial(processor_s, pid),
            )
            self._stacks[rank] = SignalledStack(self._path(rank), send, cpu_s)
        return self._stacks[rank].look()

    def end(self, rank: int) -> None:
        """End a rank that hears nothing: Python's lock is held in it."""
        pid = self._pid(rank)
        if pid is not None:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _path(self, rank: int) -> str:
        return os.path.join(self._folder, f"stacks-{rank}")

    def _pid(self, rank: int) -> int | None:
        try:
            with open(self._path(rank)) as file:
                return int(file.readline().split()[0])
        except (OSError, ValueError, IndexError):
            return None


class SignalledStack:
    """Looks at one rank from a different process on its machine.

    `send()` sends it the signal; `cpu_s()` is its processor time so far, and raises OSError if it
    is not to be sent one.
    """

    def __init__(self, path: str, send: Callable[[], None], cpu_s: Callable[[], float]) -> None:
        self._path, self._send, self._cpu_s = path, send, cpu_s
        self._before: tuple[float, float] | None = None

    def look(self) -> Stand | None:
        """Where a rank is, {"blocked", "key", "call", "lines"}, as `Stack.look` has them.

        None where the rank is at work, is looked at for the first time, or does not answer. The
        name of the call is "" where only the learner's line can tell.
        """
        try:
            now, cpu = time.monotonic(), self._cpu_s()
            before, self._before = self._before, (now, cpu)
            if before is None or cpu - before[1] >= IDLE_SHARE * max(1e-3, now - before[0]):
                return None
            frames = self._frames()
        except (OSError, ValueError):
            return None
        users = [number for number, (path, *_) in enumerate(frames) if is_user_file(path)]
        if not users:  # it has not begun, or runs nothing of the learner's
            return None
        name = communication_name([(path, function) for path, _, function in frames[: users[0]]])
        lines: list[Spot] = [
            {"file": os.path.basename(path), "path": path, "line": line, "function": function}
            for path, line, function in (frames[number] for number in reversed(users))
        ]
        call: Note | None = {"call": name, **innermost_of(lines)} if name is not None else None
        return {"blocked": name is not None, "key": repr(frames), "call": call, "lines": lines}

    def _frames(self) -> list[tuple[str, int, str]]:
        """[(path, line, function), ...] of the main thread, innermost first."""
        before = os.path.getsize(self._path)
        self._send()
        deadline = time.monotonic() + ANSWER_S
        size = before
        while time.monotonic() < deadline and (
            size == before or size != os.path.getsize(self._path)
        ):
            size = os.path.getsize(self._path)
            time.sleep(0.02)
        with open(self._path, errors="replace") as file:
            main = int(file.readline().split()[-1], 16)
            file.seek(before)
            text = file.read()
        starts = [*_THREAD.finditer(text)]
        # where no thread was written, there is an end all the same
        ends = [*(start.start() for start in starts[1:]), len(text)]
        stacks = [
            text[start.start() : end]
            for start, end in zip(starts, ends, strict=False)
            if int(start[1], 16) == main
        ]
        return (
            [(path, int(line), function) for path, line, function in _FRAME.findall(stacks[-1])]
            if stacks
            else []
        )
