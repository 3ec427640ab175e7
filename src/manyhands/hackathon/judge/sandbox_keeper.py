"""The first process of a rank's sandbox.

It has torch loaded, and forks a new process for each run of an entry, so that nothing of one run is
there in the next. It runs nothing of an entry itself.

Over its socket come orders, {"rank", "ranks", "source", "layers", "weights", "memory_mib",
"cpu_s"}, each with the socket that the run's process is to have; it answers with how the process
ended. Anything that comes meanwhile ends the process. When the judge has gone, this process ends,
and with it, as the first of its namespace, all others.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


# nobody can write there: else who imports what wants to know it looks for another
tempfile.tempdir = "/tmp"

# imports make many objects and no garbage: to look for some takes a fifth of their time
gc.disable()

import torch._dynamo  # noqa: E402 (any optimizer imports it, 1 s)
import torch.nn.parallel  # noqa: E402

from manyhands.hackathon.entry import rank_side  # noqa: E402
from manyhands.hackathon.judge import closed_calls  # noqa: E402
from manyhands.hackathon.judge.run_spaces import OneSpace  # noqa: E402

# torch looks at the processors when it first makes halves of floats, for which it reads the
# system's own /proc
torch.ones(16).half().float().bfloat16().float()

gc.freeze()
# Triton, which PyTorch's CUDA build brings, lists its objects that a frozen process keeps
atexit.register(gc.unfreeze)
gc.enable()


class OfModel(TypedDict, total=False):
    """What a rank is told of the network, or of a model that does not fit."""

    layers: Sequence[int]
    weights: str  # bytes in hexadecimal digits
    sizes: list[int]  # of the stages
    activation: int
    batch_size: int
    most_batches: int


class _OfEntry(OfModel, total=False):
    source: str  # until the rank reads it


class OrderOfAll(_OfEntry):
    """What the sandboxes of all ranks are told of a run."""

    ranks: int
    memory_mib: int
    cpu_s: int


class Order(OrderOfAll):
    """What a sandbox is told of a run."""

    rank: int


class Ended(TypedDict):
    """How the process of a run has ended: by which signal, or 0."""

    signal: int
    processor_s: float


_PR_SET_DUMPABLE = 4
MOST_ORDER_BYTES, MOST_FILES = 2**20, 64


def main(number: int, spaces: OneSpace | None = None) -> None:
    """`spaces` are the namespaces of each run, in a sandbox (`RunSpaces`)."""
    spaces = spaces or OneSpace()
    # the first process of a namespace gets only signals that it handles
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody looks into it
    line = socket.socket(fileno=number)
    line.send(b"ready")
    while True:
        text, fds, _, _ = socket.recv_fds(line, MOST_ORDER_BYTES, 1)
        if not text:
            return
        if fds:  # else the end of a run that has ended meanwhile
            order, text = json.loads(text), b""  # so that a rank does not have its entry's text
            line.send(json.dumps(_run(line, order, fds[0], spaces)).encode())


def _run(line: socket.socket, order: Order, fd: int, spaces: OneSpace) -> Ended:
    spaces.begin()
    child = os.fork()
    if child == 0:
        _be_a_rank(order, fd, spaces)
    os.close(fd)
    ended = os.pidfd_open(child)
    waited: list[socket.socket | int] = [line, ended]
    if ended not in select.select(waited, [], [])[0]:
        line.recv(1)
        os.kill(child, signal.SIGKILL)
    os.close(ended)
    _, status, usage = os.wait4(child, 0)
    spaces.end()
    return {
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "processor_s": usage.ru_utime + usage.ru_stime,
    }


def _be_a_rank(order: Order, fd: int, spaces: OneSpace) -> NoReturn:
    """Does not return.

    No open file of the keeper's stays: its place and flags would be there in the next run.
    """
    try:
        address_space = spaces.address_space()
        for number in range(3):
            os.dup2(os.open("/dev/null", os.O_RDWR), number)
        os.closerange(3, fd)
        os.closerange(fd + 1, MOST_FILES)
        limits = {
            resource.RLIMIT_AS: address_space + order["memory_mib"] * 2**20,
            resource.RLIMIT_CPU: order["cpu_s"],
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: MOST_FILES,
            resource.RLIMIT_MEMLOCK: 0,
        }
        for kind, limit in limits.items():
            resource.setrlimit(kind, (limit, limit))
        spaces.leave()
        closed_calls.close()
        rank_side.run(order, socket.socket(fileno=fd))
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
