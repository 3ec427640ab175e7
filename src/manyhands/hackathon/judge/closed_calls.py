"""The only system calls that a rank may make once an entry runs in it.

Its sandbox has no network and no file that can be written. Everything else through which two
sandboxes, or two runs in one sandbox, could exchange a number is refused: new processes, sockets,
pipes, locks and hints on files that both see, queues and keys and memory that stay in the kernel,
calls that show or change which pages of a library are in memory, and calls that count for the whole
machine or for all processes of a user (contexts of asynchronous I/O, timers, the numbers of files
without a name). A list of what is refused was never complete, because the kernel gains calls with
each version; so this is the list of what Python and torch need after they have been loaded. A call
that is missing here gives PermissionError. The same filter is what there is of a wall around ranks
without a sandbox (`open_judge`). It cannot be taken off again.
"""

from __future__ import annotations

import os

from manyhands.shared import seccomp
from manyhands.shared.seccomp import FIRST, FOURTH, SECOND, THIRD, Step, end, load, when

MACHINES = ("x86_64", "aarch64")
Numbers = tuple[int | None, int | None]  # of a call, on each of the machines
# (x86_64, aarch64); None where a machine does not have the call
OPEN: dict[str, Numbers] = {
    # files, which can only be read
    "read": (0, 63),
    "pread64": (17, 67),
    "readv": (19, 65),
    "write": (1, 64),
    "writev": (20, 66),
    "lseek": (8, 62),
    "close": (3, 57),
    "close_range": (436, 436),
    "dup": (32, 23),
    "dup2": (33, None),
    "stat": (4, None),
    "lstat": (6, None),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    # the connection to the judge
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "shutdown": (48, 210),
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    "getsockopt": (55, 209),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    # the process's own memory, signals and threads
    "brk": (12, 214),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "membarrier": (324, 283),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133),
    "sigaltstack": (131, 132),
    "pause": (34, None),
    "alarm": (37, None),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "set_tid_address": (218, 96),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125),
    "sched_get_priority_min": (147, 126),
    "getcpu": (309, 168),
    "restart_syscall": (219, 128),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # time, chance, and what the process is
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getrandom": (318, 278),
    "uname": (63, 160),
    "getrlimit": (97, 163),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getpgrp": (111, None),
    "getpgid": (121, 155),
    "getsid": (124, 156),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
}
_TO_WRITE = 0o1 | 0o2 | 0o100 | 0o1000  # of open: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
# of clone; of mmap; signals from 32 on, which queue up
_THREAD, _HUGE_PAGES, _REAL_TIME = 0x10000, 0x40000, 0xFFFFFFE0
# of fcntl: to duplicate, flags, to look at a lock. Locks, leases, watches and hints would be seen
# in other sandboxes
_FCNTL = (0, 1, 2, 3, 4, 5, 1030)
# of ioctl: whether it is a terminal (two ways) and how wide, close on exec or not, blocking or not,
# bytes to be read
_IOCTL = (0x5401, 0x802C542A, 0x5413, 0x5450, 0x5451, 0x5421, 0x541B)
# of madvise: advice for the process alone. What fills, drops or merges pages that others have too
# is missing
_MADVISE = (0, 1, 2, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19)
# of futex, where the number that is waited for is not in a page of the process alone
_WAITS = (0, 9, 11)
# call, its numbers, the argument that is looked at, and: one of these values, or none of these
# bits, or this bit
CHECKED: tuple[tuple[str, Numbers, int, str, int | tuple[int, ...]], ...] = (
    ("open", (2, None), SECOND, "none", _TO_WRITE),
    ("openat", (257, 56), THIRD, "none", _TO_WRITE),
    ("mmap", (9, 222), FOURTH, "none", _HUGE_PAGES),
    ("kill", (62, 129), SECOND, "none", _REAL_TIME),
    ("tkill", (200, 130), SECOND, "none", _REAL_TIME),
    ("tgkill", (234, 131), THIRD, "none", _REAL_TIME),
    ("clone", (56, 220), FIRST, "has", _THREAD),
    ("fcntl", (72, 25), SECOND, "is", _FCNTL),
    ("ioctl", (16, 29), SECOND, "is", _IOCTL),
    ("madvise", (28, 233), THIRD, "is", _MADVISE),
)
_FUTEX, _PRLIMIT = (202, 98), (302, 261)


def known() -> bool:
    """Whether the calls of this machine are known."""
    return os.uname().machine in MACHINES


def close() -> None:
    """From now on, in this process and its threads to come."""
    seccomp.install(_program(os.uname().machine))


def _program(machine: str) -> bytes:
    """The filter, as the operating system of this machine reads it."""
    column = MACHINES.index(machine)
    calls: list[tuple[Numbers, list[Step]]] = [
        (_FUTEX, _futex()),
        (_PRLIMIT, _own_limits_read()),
        *(
            (numbers, _checked(argument, how, values))
            for _, numbers, argument, how, values in CHECKED
        ),
        *((numbers, [end(seccomp.ALLOW)]) for numbers in OPEN.values()),
    ]
    steps = [
        step
        for numbers, body in calls
        if (number := numbers[column]) is not None
        for step in when(number, *body)
    ]
    return seccomp.program(machine, steps, otherwise=seccomp.REFUSE)


def _checked(argument: int, how: str, values: int | tuple[int, ...]) -> list[Step]:
    if isinstance(values, tuple):  # where `how` is "is"
        good = [step for value in values for step in when(value, end(seccomp.ALLOW))]
        return [load(argument), *good, end(seccomp.REFUSE)]
    results = (seccomp.REFUSE, seccomp.ALLOW) if how == "none" else (seccomp.ALLOW, seccomp.REFUSE)
    return [load(argument), (seccomp.ANY_OF, 0, 1, values), *map(end, results)]


def _futex() -> list[Step]:
    """Allow futex calls, but answer a wait that is not private to the process with "look again".

    Such a wait is not refused, because a thread that waits for the end of another thread makes one,
    and a C library gives up when it is refused.
    """
    waits = [step for kind in _WAITS for step in when(kind, end(seccomp.AGAIN))]
    return [load(SECOND), (seccomp.ONLY, 0, 0, 0xFF), *waits, end(seccomp.ALLOW)]


def _own_limits_read() -> list[Step]:
    """Allow a process to read its own limits, but never to set one.

    A limit that is moved reveals how much of it a user's processes have used.
    """
    zero = [
        step
        for half in (FIRST, THIRD, THIRD + 4)
        for step in (load(half), (seccomp.EQUAL, 1, 0, 0), end(seccomp.REFUSE))
    ]
    return [*zero, end(seccomp.ALLOW)]
