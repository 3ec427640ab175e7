"""Jobs side by side, each in a process of its own that is forked from this one.

What a job does to its process harms no other.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from manyhands.isolation import process_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

_PR_SET_PDEATHSIG = 1
HELD = {signal.SIGTERM, signal.SIGINT}
STOP_TIMEOUT_S = 20  # for a job to clean up after itself when it is told to stop
WALL_S, MEMORY_BYTES = 3600, 2**30  # for a job
TOO_LONG = (
    "it was stopped after {wall_s:.0f} s, later than any limit of its notebook, because what was "
    "handed in keeps the grader itself busy"
)
TOO_MUCH = (
    "what was handed in, or what it showed, took more than {mb} MB of the grader's own memory"
)


J = TypeVar("J")  # a job
R = TypeVar("R")  # what comes of it


class Closes(Protocol):
    """An open file or connection."""

    def close(self) -> None:
        """Close it."""


@dataclass
class Failed:
    """What comes in place of a result where a job did not get to its end.

    It raised an error, or its process ended before it was done.
    """

    why: str


@dataclass
class Running:
    """A job that runs: what it is, its process, and until when it may run."""

    job: Any
    process: BaseProcess
    until: float
    stopped: bool = False


def run(
    jobs: Iterable[J],
    work: Callable[[J], R],
    *,
    slots: int,
    cost: Callable[[J], int],
    scratch: Path,
    wall_s: float = WALL_S,
    memory_bytes: int = MEMORY_BYTES,
    closed: Sequence[Closes] = (),
) -> Iterator[tuple[J, R | Failed]]:
    """Yield (job, result) in the order in which jobs end.

    `Failed` is the result of one that did not.

    `work(job)` runs in a forked process, its temporary files in the folder `scratch`; its result
    must be picklable. A job that runs longer than `wall_s` is stopped. It has `memory_bytes` of its
    own; what it starts has limits of its own. A job takes `cost(job)` of the `slots` while it
    runs; one that needs all of them is not started beside another. `closed` are open files that a
    job must not keep. Who stops this generator (Ctrl-C) stops the jobs; when this process is
    killed, they stop by themselves. Call it from a process that has no threads.
    """
    waiting = list(jobs)
    running: dict[Any, Running] = {}  # by the connection that a result comes over
    try:
        while waiting or running:
            free = slots - sum(cost(running_job.job) for running_job in running.values())
            while waiting and (not running or cost(waiting[0]) <= free):
                free -= cost(waiting[0])
                job = waiting.pop(0)
                # one that came while a job starts would leave it behind, unknown to us
                with _no_signals():
                    receiver, process = _start(job, work, memory_bytes, scratch, closed)
                    running[receiver] = Running(job, process, time.monotonic() + wall_s)
            ready: list[Any] = wait(
                list(running),
                timeout=max(
                    0, min(running_job.until for running_job in running.values()) - time.monotonic()
                ),
            )
            for ended in ready:
                running_job = running.pop(ended)
                yield running_job.job, _result(ended, running_job, wall_s)
            _end_what_took_too_long(running.values())
    finally:
        _stop([running_job.process for running_job in running.values()])


def _end_what_took_too_long(running: Iterable[Running]) -> None:
    """Tell them to stop; those that were told before are killed."""
    for running_job in running:
        if time.monotonic() > running_job.until:
            (running_job.process.kill if running_job.stopped else running_job.process.terminate)()
            running_job.stopped, running_job.until = True, time.monotonic() + STOP_TIMEOUT_S


@contextmanager
def _no_signals() -> Iterator[None]:
    """SIGTERM and SIGINT wait until the block has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(
    job: J, work: Callable[[J], Any], memory_bytes: int, scratch: Path, closed: Sequence[Closes]
) -> tuple[Connection, BaseProcess]:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(
        target=_job,
        args=(job, work, memory_bytes, sender, os.getpid(), scratch, (receiver, *closed)),
    )
    process.start()
    sender.close()
    return receiver, process


def _job(
    job: J,
    work: Callable[[J], Any],
    memory_bytes: int,
    sender: Connection,
    parent: int,
    scratch: Path,
    closed: Iterable[Closes],
) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process hears it and stops us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(143)
    for file in closed:
        file.close()
    tempfile.tempdir = str(scratch)
    process_limits.limit_own(memory_bytes)
    try:
        result = work(job)
    except MemoryError:
        result = Failed(TOO_MUCH.format(mb=memory_bytes // 2**20))
    except Exception as error:  # noqa: BLE001 - a worker hands on whatever a job raises
        result = Failed(f"{type(error).__name__}: {error}")
    with suppress(BrokenPipeError):
        sender.send(result)


def _result(receiver: Connection, running_job: Running, wall_s: float) -> Any:
    try:
        result = receiver.recv()
    except (EOFError, OSError):
        running_job.process.join()
        why = (
            TOO_LONG.format(wall_s=wall_s)
            if running_job.stopped
            else f"the process that graded it ended with code {running_job.process.exitcode}"
        )
        result = Failed(why)
    receiver.close()
    running_job.process.join()
    return result


def _stop(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(STOP_TIMEOUT_S)
        if process.is_alive():
            process.kill()
            process.join()
