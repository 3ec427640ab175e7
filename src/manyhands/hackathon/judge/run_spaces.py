"""What is made anew for each run in a sandbox.

These are process IDs that start at 1, and a `/proc` in which there are only these.

The sandbox's first process has the right to make namespaces (`CAP_SYS_ADMIN` of the sandbox's own user
namespace); a rank gives it up before it reads the entry. `/proc` is a folder in memory with an
empty folder for each process of a run: the system's own tells of the whole machine in `/proc/sys`,
`loadavg` or `meminfo`, and its `/proc/self/smaps` counts how many processes of the machine have a
page of a library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


CAPABILITIES = ("CAP_SYS_ADMIN",)  # what the sandbox's first process needs for this
_NEW_IDS = 0x20000000
_NO_SETUID, _NO_DEVICES, _NO_PROGRAMS, _READ_ONLY, _AGAIN = 2, 4, 8, 1, 32
_CAPABILITY_VERSION = 0x20080522
FIRST, RANK = "1", "2"  # the process IDs of a run


class OneSpace:
    """No namespaces: a run has the process IDs that come next. For ranks without sandboxes."""

    def __init__(self) -> None:
        self.pages = os.open("/proc/self/statm", os.O_RDONLY)

    def address_space(self) -> int:
        """The bytes of this process's address space."""
        return int(os.pread(self.pages, 100, 0).split()[0]) * resource.getpagesize()

    def begin(self) -> None:
        """Do nothing before a run."""
        pass

    def leave(self) -> None:
        """Do nothing in the process of a run."""
        pass

    def end(self) -> None:
        """Do nothing after a run."""
        pass


class RunSpaces(OneSpace):
    """The namespaces of the runs in a sandbox, one run after the other.

    The sandbox's first process makes them once.
    """

    _first: int  # the process ID of the one that ends with a run

    def __init__(self) -> None:
        super().__init__()
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        for place in ("/proc", "/dev/pts"):
            _cover(place, (FIRST, RANK) if place == "/proc" else ())

    def begin(self) -> None:
        """Let the process that is forked next have process ID 2.

        Process 1 does nothing, and all end with it.
        """
        _ask("setns", self._own, _NEW_IDS)  # else the kernel makes no second one
        _ask("unshare", _NEW_IDS)
        self._first = os.fork()
        if self._first == 0:
            while True:
                signal.pause()

    def leave(self) -> None:
        """In the rank: give up every right for good."""
        head, none = struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24)
        _ask("capset", head, none)

    def end(self) -> None:
        """After this no process of the run is left."""
        os.kill(self._first, signal.SIGKILL)
        os.waitpid(self._first, 0)


def trial() -> None:
    """Whether a sandbox can make all this here; for its first process.

    Raises OSError where it cannot.
    """
    spaces = RunSpaces()
    for _ in range(2):
        spaces.begin()
        spaces.end()


def _cover(place: str, folders: Iterable[str]) -> None:
    """Put a folder in memory over this one, with these empty folders.

    It can only be read then.
    """
    flags = _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS
    _ask(
        "mount",
        b"none",
        place.encode(),
        b"tmpfs",
        ctypes.c_ulong(flags),
        b"size=16k,nr_inodes=16,mode=755",
    )
    for name in folders:
        os.mkdir(f"{place}/{name}", 0o555)
    _ask("mount", b"none", place.encode(), None, ctypes.c_ulong(flags | _READ_ONLY | _AGAIN), None)


def _ask(call: str, *values: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, call)(*values):
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}")
