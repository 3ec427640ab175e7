"""Filters of system calls: how one is written, and how a process puts itself behind it.

A filter is a program in classic BPF, whose steps are (code, steps to skip if the comparison holds,
steps to skip if not, value). Source: the manual page seccomp(2).
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Step = tuple[int, int, int, int]

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as a filter sees them
EQUAL, ANY_OF, ONLY = 0x15, 0x45, 0x54  # two comparisons, and to keep these bits alone
_LOAD, _AT_LEAST, _END = 0x20, 0x35, 0x06
FIRST, SECOND, THIRD, FOURTH = 16, 24, 32, 40  # where a call's arguments are
_NUMBER, _MACHINE = 0, 4  # where the call's number and the machine are
_CLONE3, _X32 = 435, 0x40000000
# what becomes of a call; the errors are EPERM, ENOSYS and EAGAIN
ALLOW, REFUSE, MISSING, AGAIN = 0x7FFF0000, 0x00050001, 0x00050026, 0x0005000B
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2


def load(place: int) -> Step:
    """Read the 4 bytes there, which the next comparisons look at."""
    return _LOAD, 0, 0, place


def end(result: int) -> Step:
    """End the filter with this result."""
    return _END, 0, 0, result


def when(value: int, *steps: Step) -> list[Step]:
    """Take these steps only if what was read is this value."""
    return [(EQUAL, 0, len(steps), value), *steps]


def program(machine: str, steps: Iterable[Step], otherwise: int) -> bytes:
    """The filter, as the operating system reads it; raises KeyError for an unknown machine.

    `steps` begin with the call's number read. `otherwise` is the result where they do not end.
    """
    before = [
        # system calls of another machine
        load(_MACHINE),
        (EQUAL, 1, 0, MACHINES[machine]),
        end(REFUSE),
        load(_NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        end(REFUSE),
        # its flags cannot be seen: all fall back to clone
        *when(_CLONE3, end(MISSING)),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in (*before, *steps, end(otherwise)))


def install(program: bytes) -> None:
    """Put this process and its threads to come behind the filter, which cannot be taken off."""
    code = ctypes.create_string_buffer(program)
    whole = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    for option, *values in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _FILTER, ctypes.addressof(whole), 0, 0),
    ):
        if libc.prctl(option, *map(ctypes.c_ulong, values)):
            raise OSError(ctypes.get_errno(), f"prctl {option}")
