"""The first process of a container that a submission runs in.

It starts the kernel, watches it, and ends with the grader.

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


class Order(TypedDict):
    """What the grader wants to be run; a container that is only tried has no command.

    `filters` of system calls are in hexadecimal digits, for each machine, and added as it is sent.
    """

    folder: str
    filters: NotRequired[dict[str, str]]
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
    """Take the order from the socket at this path, run it, and report why the kernel has ended."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    message, fds, _, _ = socket.recv_fds(line, 2**16, 16)
    order = json.loads(message)
    _close_off(bytes.fromhex(order["filters"][os.uname().machine]))
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


def _close_off(calls: bytes) -> None:
    """Close this process to signals and tracing from inside, and put all here behind a filter.

    `calls` is the filter of system calls, which the grader sends: nothing of the image writes it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _prctl(_PR_SET_DUMPABLE, 0)
    program = ctypes.create_string_buffer(calls)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    whole = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(calls) // 8, ctypes.addressof(program))
    )
    _prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(whole))


def _prctl(option: int, *values: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *(ctypes.c_ulong(value) for value in (*values, 0, 0, 0)[:4])):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


if __name__ == "__main__":
    main(sys.argv[1])
