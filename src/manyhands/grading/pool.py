"""Jobs side by side, each in a process of its own that is forked from this one: what a job does to its process harms no other."""

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait

_PR_SET_PDEATHSIG = 1
HELD = {signal.SIGTERM, signal.SIGINT}
PATIENCE_S = 20  # for a job to clean up after itself when it is told to stop


@dataclass
class Failed:
    """What comes in place of a result where a job raised an error or its process ended before it was done."""

    why: str


def run(jobs, work, *, places, cost, scratch, closed=()):
    """Yield (job, result) in the order in which jobs end; `Failed` is the result of one that did not.

    `work(job)` runs in a forked process, its temporary files in the folder `scratch`; its result must be picklable.
    A job takes `cost(job)` of the `places` while it runs; one that needs all of them is not started beside another.
    `closed` are open files that a job must not keep. Who stops this generator (Ctrl-C) stops the jobs; when this process
    is killed, they stop by themselves. Call it from a process that has no threads.
    """
    waiting, running = list(jobs), {}
    try:
        while waiting or running:
            free = places - sum(cost(job) for job, _ in running.values())
            while waiting and (not running or cost(waiting[0]) <= free):
                free -= cost(waiting[0])
                job = waiting.pop(0)
                with _no_signals():  # one that came while a job starts would leave it behind, unknown to us
                    receiver, process = _start(job, work, scratch, closed)
                    running[receiver] = job, process
            for receiver in wait(list(running)):
                yield running[receiver][0], _result(receiver, *running.pop(receiver)[1:])
    finally:
        _stop([process for _, process in running.values()])


@contextmanager
def _no_signals():
    """SIGTERM and SIGINT wait until the block has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(job, work, scratch, closed):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_job, args=(job, work, sender, os.getpid(), scratch, (receiver, *closed)))
    process.start()
    sender.close()
    return receiver, process


def _job(job, work, sender, parent, scratch, closed):
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
    try:
        result = work(job)
    except Exception as error:
        result = Failed(f"{type(error).__name__}: {error}")
    with suppress(BrokenPipeError):
        sender.send(result)


def _result(receiver, process):
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        result = Failed(f"the process that graded it ended with code {process.exitcode}")
    receiver.close()
    process.join()
    return result


def _stop(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(PATIENCE_S)
        if process.is_alive():
            process.kill()
            process.join()
