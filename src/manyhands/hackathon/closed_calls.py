"""What a rank may not ask of the operating system once an entry runs in it.

Its room has no network and no file that can be written. What is left between two rooms, or between two runs in one, is
refused here: new processes, sockets, locks on files that both see, pipes, of which the system counts what a user's
processes have, memory and queues and keys that stay in the kernel. So is what tells or changes which pages of a library
the system keeps in memory, and waiting on a number in such a page, where another room could wake who waits. And all
that changes files, names and dates, which is what there is of a wall around ranks without rooms (`open_judge`).
The filter cannot be taken off again.
"""

import ctypes
import os
import struct

# (x86_64, aarch64); None where a machine does not have the call
CALLS = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "flock": (73, 32), "pipe": (22, None), "pipe2": (293, 59),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "bpf": (321, 280),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "prctl": (157, 167),  # a process's name can be read by others
    "fadvise64": (221, 223), "preadv2": (327, 286), "mincore": (27, 232), "cachestat": (451, 451),
    "readahead": (187, 213), "process_madvise": (440, 440), "futex_waitv": (449, 449), "futex_wait": (455, 455),
    "creat": (85, None), "openat2": (437, 437), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "mknod": (133, None), "mknodat": (259, 33), "symlink": (88, None), "symlinkat": (266, 36), "link": (86, None),
    "linkat": (265, 37), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "unlink": (87, None),
    "unlinkat": (263, 35), "truncate": (76, 45), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
}
MACHINES = ("x86_64", "aarch64")
_AUDIT, _CLONE, _FCNTL, _PRLIMIT, _CLONE3 = (0xC000003E, 0xC00000B7), (56, 220), (72, 25), (302, 261), 435
_OPEN, _OPENAT, _TO_WRITE = (2, None), (257, 56), 0o1 | 0o2 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_THREAD, _X32 = 0x10000, 0x40000000
_MADVISE, _FUTEX = (28, 233), (202, 98)
_PAGES = (20, 21)  # of madvise: cold, out of memory
_WAITS = (0, 9, 11)  # of futex, where it is not a process's own
_LOCKS = (6, 7, 37, 38)  # of fcntl: to set a lock, of a process or of an open file, waiting or not
_ALLOW, _REFUSE, _MISSING, _AGAIN = 0x7FFF0000, 0x00050001, 0x00050026, 0x0005000B  # errors: EPERM, ENOSYS, EAGAIN
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2


def known():
    """Whether the calls of this machine are known."""
    return os.uname().machine in MACHINES


def close():
    """From now on, in this process and its threads to come."""
    program = _program(MACHINES.index(os.uname().machine))
    code = ctypes.create_string_buffer(program)
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, *values in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER, ctypes.addressof(whole))):
        if libc.prctl(option, *map(ctypes.c_ulong, values)):
            raise OSError(ctypes.get_errno(), f"prctl {option}")


def _program(machine):
    """The filter, as the operating system reads it: steps of (code, skip if so, skip if not, value)."""
    load, equal, at_least, any_of, only, end = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
    number, kind, first, second, third = 0, 4, 16, 24, 32  # where the call's number, the machine, the arguments stand
    steps = [(load, 0, 0, kind), (equal, 1, 0, _AUDIT[machine]), (end, 0, 0, _REFUSE),
             (load, 0, 0, number), (at_least, 0, 1, _X32), (end, 0, 0, _REFUSE),
             (equal, 0, 1, _CLONE3), (end, 0, 0, _MISSING)]  # its flags cannot be seen: all fall back to clone
    for numbers in CALLS.values():
        if numbers[machine] is not None:
            steps += [(equal, 0, 1, numbers[machine]), (end, 0, 0, _REFUSE)]
    for call, flags in ((_OPEN[machine], second), (_OPENAT[machine], third)):
        if call is not None:
            steps += [(equal, 0, 4, call), (load, 0, 0, flags), (any_of, 0, 1, _TO_WRITE), (end, 0, 0, _REFUSE),
                      (end, 0, 0, _ALLOW)]
    locks = [step for lock in _LOCKS for step in ((equal, 0, 1, lock), (end, 0, 0, _REFUSE))]
    steps += [(equal, 0, len(locks) + 2, _FCNTL[machine]), (load, 0, 0, second), *locks, (end, 0, 0, _ALLOW)]
    pages = [step for advice in _PAGES for step in ((equal, 0, 1, advice), (end, 0, 0, _REFUSE))]
    steps += [(equal, 0, len(pages) + 2, _MADVISE[machine]), (load, 0, 0, third), *pages, (end, 0, 0, _ALLOW)]
    # not refused but "look again", which is what a thread does that waits for another's end: a C library gives up else
    waits = [step for kind in _WAITS for step in ((equal, 0, 1, kind), (end, 0, 0, _AGAIN))]
    steps += [(equal, 0, len(waits) + 3, _FUTEX[machine]), (load, 0, 0, second), (only, 0, 0, 0xFF), *waits,
              (end, 0, 0, _ALLOW)]
    steps += [(equal, 0, 4, _CLONE[machine]), (load, 0, 0, first), (any_of, 1, 0, _THREAD), (end, 0, 0, _REFUSE),
              (end, 0, 0, _ALLOW)]
    steps += [(equal, 0, 4, _PRLIMIT[machine]), (load, 0, 0, first), (equal, 1, 0, 0), (end, 0, 0, _REFUSE),
              (end, 0, 0, _ALLOW)]  # only one's own limits
    return b"".join(struct.pack("HBBI", *step) for step in [*steps, (end, 0, 0, _ALLOW)])
