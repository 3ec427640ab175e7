"""The first process of a container that a submission runs in:
it starts the kernel, watches it, and ends with the grader.

The image's Python gets this text and the path of a socket. Over the socket come the order and the
open files for the kernel; from then on the connection is the line to the grader. When the line is
cut, or the kernel has ended, this process ends, and with it, as the first of its namespace, all
others. They cannot keep it from that: it is closed to tracing, and none of their signals reaches
it.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NotRequired

EVERY_S = 0.2
CGROUPS = Path("/sys/fs/cgroup")
# each with its file in version 2 of the control groups and in version 1
MEMORY, TASKS, KILLS = (
    ("memory.max", "memory/memory.limit_in_bytes"),
    ("pids.max", "pids/pids.max"),
    ("memory.events", "memory/memory.oom_control"),
)
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 4, 22, 38, 2
# machine -> its number, and those of clone, fcntl, and what is refused as a whole: unshare, setns,
# each way to watch files (of which the host has a number for all of a user's processes), io_setup
# (of which it has one for all users), add_key, request_key, keyctl, and the kernel's log; the
# number of clone3 is 435 everywhere
CALLS = {
    "x86_64": (0xC000003E, 56, 72, 272, 308, 253, 294, 300, 206, 248, 249, 250, 103),
    "aarch64": (0xC00000B7, 220, 25, 97, 268, 26, 262, 0, 217, 218, 219, 116),
}
_NEW_SPACES, _X32, _LEASE, _NOTIFY, _SET_HINT = 0x7E020000, 0x40000000, 1024, 1026, 1036


class Order(TypedDict):
    """What the grader wants to be run; a container that is only tried has no command."""

    folder: str
    command: NotRequired[list[str]]
    environment: NotRequired[dict[str, str]]
    submission: NotRequired[str]
    file_bytes: NotRequired[int]
    processes: NotRequired[int]


class Facts(TypedDict):
    """What a container answers."""

    course: str
    limits: list[str]


def main(path: str) -> None:
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    told, fds, _, _ = socket.recv_fds(line, 2**16, 16)
    order = json.loads(told)
    _close_off()
    os.makedirs(order["folder"])
    kernel = start(order, fds) if "command" in order else None
    line.sendall(json.dumps(facts()).encode())
    if kernel and (why := watch(line, kernel, order["processes"])):
        line.sendall(why.encode())


def facts() -> Facts:
    """What the image holds, and which limits hold here."""
    spec = find_spec("manyhands")
    assert spec is not None and spec.origin is not None  # the image holds the package
    return {
        "course": course(Path(spec.origin).parent),
        "limits": [_read(MEMORY).strip(), _read(TASKS).strip()],
    }


def course(package: Path) -> str:
    """What the package is: it changes with each of its files."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def start(order: Order, fds: Sequence[int]) -> subprocess.Popen[bytes]:
    """Unpack the submission and start the kernel beside it, which gets the open files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
    with tarfile.open(order["submission"]) as archive:
        archive.extractall(order["folder"])
    kernel = subprocess.Popen(
        [*order["command"][:-1], order["command"][-1] + ",".join(map(str, fds))],
        env=order["environment"],
        cwd=order["folder"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=fds,
    )
    for fd in fds:
        os.close(fd)
    return kernel


def watch(line: socket.socket, kernel: subprocess.Popen[bytes], processes: int) -> str | None:
    """Wait; "memory", "processes" or "died", or nothing where the grader has gone."""
    while not select.select([line], [], [], EVERY_S)[0]:
        while ended := os.waitpid(-1, os.WNOHANG)[0]:  # orphans come to us
            if ended == kernel.pid:
                return "memory" if _killed_for_memory() else "died"
        if sum(name.isdigit() for name in os.listdir("/proc")) > 1 + processes:
            return "processes"
    return None


def _killed_for_memory() -> bool:
    return any(
        line.split()[0] == "oom_kill" and int(line.split()[1])
        for line in _read(KILLS).splitlines()
        if line.strip()
    )


def _read(names: Iterable[str]) -> str:
    """What our control group has in the first of these files that is there."""
    for name in names:
        try:
            return (CGROUPS / name).read_text()
        except OSError:
            pass
    return ""


def _close_off() -> None:
    """No signal from inside is heard, nobody looks into this process,
    and nobody here makes what `closed_calls` closes.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _prctl(_PR_SET_DUMPABLE, 0)
    calls = closed_calls()
    program = ctypes.create_string_buffer(calls)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    whole = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(calls) // 8, ctypes.addressof(program))
    )
    _prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(whole))


def closed_calls() -> bytes:
    """A filter of system calls, as the operating system reads it: no new namespaces (which podman
    allows), no watches of files, no leases, and nothing that stays in the kernel of the host, where
    another sandbox could read it: contexts of asynchronous I/O, keys, hints at files.
    """
    machine, clone, fcntl, *refused = CALLS[os.uname().machine]
    # the two numbers after a comparison: steps to skip if it holds, and if not
    load, equal, at_least, any_of, end = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, missing = 0x7FFF0000, 0x00050001, 0x00050026  # an error: EPERM, ENOSYS
    steps = [
        # system calls of another machine
        (load, 0, 0, 4),
        (equal, 1, 0, machine),
        (end, 0, 0, refuse),
        (load, 0, 0, 0),
        (at_least, 0, 1, _X32),
        (end, 0, 0, refuse),
        # clone3, whose flags cannot be seen: all fall back to clone
        (equal, 0, 1, 435),
        (end, 0, 0, missing),
        *(step for number in refused for step in ((equal, 0, 1, number), (end, 0, 0, refuse))),
        (equal, 0, 6, fcntl),
        (load, 0, 0, 24),
        (equal, 2, 0, _LEASE),
        (equal, 1, 0, _NOTIFY),
        (equal, 0, 1, _SET_HINT),
        (end, 0, 0, refuse),
        (end, 0, 0, allow),
        (equal, 0, 3, clone),
        (load, 0, 0, 16),
        (any_of, 0, 1, _NEW_SPACES),
        (end, 0, 0, refuse),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _prctl(option: int, *values: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *(ctypes.c_ulong(value) for value in (*values, 0, 0, 0)[:4])):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


if __name__ == "__main__":
    main(sys.argv[1])
