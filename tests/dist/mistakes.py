"""What the tests of mistakes share.

A wrong program runs on all ranks, then it is seen whether its communicator still works.

A test module lists its programs with `mistake`, and each says which rank gets which error:

    @mistake({0: "ValueError: send: rank 0 is this rank itself"})
    def send_to_itself(c):
        if c.rank == 0:
            functions.send(torch.ones(3), c, 0)

An expected error is "Type: words", where "..." stands for anything in between. A rank that is not
named must get no error.
"""

import gc
import importlib
import re
import time
import traceback
import warnings
from pathlib import Path

import torch
from our_processes import SLOWER

from manyhands import functions

WAITS_S = 1.5  # the time-out of communicators in programs that wait for it
AT_ONCE_S = 20.0  # the time-out in programs whose mistake is seen without waiting


def mistake(expected, ranks=2, waits=False):
    """Mark a program as a mistake that raises `expected`, {rank: "Type: words"}.

    `waits`: it is noticed by a time-out only.
    """

    def marked(program):
        program.expected, program.ranks, program.waits = expected, ranks, waits
        return program

    return marked


def all_of(module):
    """The programs of a test module, in the order in which they are written."""
    return [
        value
        for value in vars(importlib.import_module(module)).values()
        if hasattr(value, "expected")
    ]


def attempt(c, module, name, folder):
    """Run a program on this rank: (its error or None, seconds).

    Then all ranks must be able to use the communicator.
    """
    # a rank that still was in the call that made `c` would take in what the program sends
    meet(c, folder, "begin")
    begun, error = time.monotonic(), None
    warnings.simplefilter("ignore")  # some of these programs are warned too
    try:
        # what a program returns lives until the ranks have met
        result = getattr(importlib.import_module(module), name)(c)
    except (ValueError, RuntimeError) as caught:
        error = f"{type(caught).__name__}: {caught}"
        traceback.clear_frames(caught.__traceback__)  # graphs that its frames keep
        result = None
    seconds = time.monotonic() - begun
    meet(c, folder, "end")
    del result
    gc.collect()
    c.timeout_s = AT_ONCE_S  # that of the mistake may be too short for a busy machine
    use(c)
    return error, seconds


def meet(c, folder, where):
    """Wait for the other ranks without a message: each makes a file."""
    Path(folder, f"{where}{c.rank}").touch()
    while len(list(Path(folder).glob(f"{where}*"))) < c.size:
        time.sleep(0.01)


def use(c):
    """Collectives, messages, and gradients through both; right values on all ranks."""
    assert c.allgather_obj(c.rank) == list(range(c.size))
    x = torch.full((3,), float(c.rank), requires_grad=True)
    ys = functions.allgather(c, x)
    assert [y[0].item() for y in ys] == list(range(c.size))
    sum(((rank + 1) * y).sum() for rank, y in enumerate(ys)).backward()
    assert x.grad.tolist() == [c.size * (c.rank + 1.0)] * 3
    x.grad = None
    after, before = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    phi = functions.send(x, c, after)
    y = functions.recv(c, before, delegate_variable=phi)
    assert y[0].item() == before
    ((c.rank + 1) * y).sum().backward()
    assert x.grad.tolist() == [after + 1.0] * 3


def check(pool, program, folder):
    """Run a program on a pool of ranks, and compare each rank's error with what is expected."""
    timeout_s = WAITS_S if program.waits else AT_ONCE_S
    limit_s = (2 * WAITS_S + 2 * SLOWER) if program.waits else AT_ONCE_S / 2
    wrong = []
    for rank, (error, seconds) in enumerate(
        pool.values(
            attempt,
            program.ranks,
            program.__module__,
            program.__name__,
            str(folder),
            timeout_s=timeout_s,
        )
    ):
        words = program.expected.get(rank)
        if not (
            error is None
            if words is None
            else error is not None and re.match(pattern(words), error, re.DOTALL)
        ):
            wrong.append(f"rank {rank}: expected {words}\n  got {error}")
        if seconds > limit_s:
            wrong.append(f"rank {rank}: {seconds:.1f} s")
    assert not wrong, "\n".join(wrong)


def pattern(words):
    return ".*".join(re.escape(part) for part in words.split("..."))
