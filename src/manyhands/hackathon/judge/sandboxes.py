"""Sandboxes, one for each rank.

They are bubblewrap's namespaces, in which there is no network, no other process, and no place to
write.
"""

from __future__ import annotations

import functools
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from manyhands.hackathon.judge import closed_calls, run_spaces
from manyhands.isolation import bubblewrap

if TYPE_CHECKING:
    from manyhands.hackathon.judge.sandbox_keeper import Ended, Order


START_S = 600  # on a machine that has no time it takes minutes
KEEPER = (
    "import sys; from manyhands.hackathon.judge import run_spaces, sandbox_keeper; "
    "sandbox_keeper.main(int(sys.argv[1]), run_spaces.RunSpaces())"
)
TRIAL = "from manyhands.hackathon.judge import run_spaces; run_spaces.trial()"
CACHE = "/tmp/cache"  # torch wants to see it, empty
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "TORCHINDUCTOR_CACHE_DIR": CACHE,
}


class NoSandboxesError(Exception):
    """This machine cannot make such sandboxes; the message says what is missing."""


def why_none() -> str | None:
    """What this machine lacks for the judge, in a sentence; None if nothing."""
    if sys.platform != "linux" or not closed_calls.known():
        return (
            "The judge needs Linux on x86_64 or aarch64, where it can restrict an entry's system "
            "calls."
        )
    spaces = bubblewrap.namespaces()
    lack = spaces if isinstance(spaces, str) else _lack_of_spaces()
    return f"The judge runs entries only in bubblewrap's rooms: {lack}" if lack else None


@functools.cache
def _lack_of_spaces() -> str:
    """Why a sandbox cannot make the namespaces of a run here, or "".

    A security module can forbid it.
    """
    done = subprocess.run(
        [*_walls(), sys.executable, "-I", "-c", TRIAL],
        env=ENVIRONMENT,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return " ".join(["a room cannot make namespaces here.", *last]) if done.returncode else ""


class Sandbox:
    """A sandbox with its keeper in it, which does not yet answer.

    `ready` waits for that.
    """

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        with theirs:
            self.process = subprocess.Popen(
                [*_walls(), sys.executable, "-I", "-c", KEEPER, str(theirs.fileno())],
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.said,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def ready(self) -> None:
        """Wait until the keeper answers; raises NoSandboxesError if it does not."""
        self.line.settimeout(START_S)
        try:
            if self.line.recv(16) == b"ready":
                return
        except TimeoutError:
            pass
        self.said.seek(0)
        last = self.said.read().decode(errors="replace").strip().splitlines()[-1:]
        raise NoSandboxesError(" ".join(["A rank's room did not open.", *last]))

    def begin(self, order: Order) -> socket.socket:
        """Begin a run; gives the judge's end of the rank's socket."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.line, [json.dumps(order).encode()], [theirs.fileno()])
        return ours

    def end(self) -> Ended:
        """End the run: how its process ended, {"signal", "processor_s"}."""
        self.line.send(b"e")
        self.line.settimeout(START_S)
        return json.loads(self.line.recv(1000))

    def close(self) -> None:
        """End what is open, and all processes in it."""
        self.process.kill()
        self.process.wait()
        self.line.close()
        self.said.close()


class Sandboxes(list[Sandbox]):
    """A `Sandbox` for each rank; a context manager. Raises `NoSandboxesError`."""

    sandbox, why_none = Sandbox, staticmethod(why_none)

    def __init__(self, ranks: int) -> None:
        super().__init__()
        why = self.why_none()
        if why:
            raise NoSandboxesError(why)
        self.ranks = ranks

    def __enter__(self) -> Sandboxes:
        try:
            for _ in range(self.ranks):
                self.append(self.sandbox())
            for sandbox in self:
                sandbox.ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is open, and all processes in it."""
        while self:
            self.pop().close()


def _walls() -> list[str]:
    """bubblewrap and its options.

    All that can be seen can only be read: a file would be a way from run to run. The first process
    inside may make namespaces (`run_spaces`), for which it must be root of the sandbox's users; what a
    rank may ask of the system is closed in the rank itself.
    """
    spaces = [space for space in bubblewrap.namespaces() if space != "--disable-userns"]
    options = [
        shutil.which("bwrap") or "bwrap",
        *bubblewrap.frame_options(spaces, []),
        "--as-pid-1",
    ]
    options += ["--uid", "0", "--gid", "0"] if "--unshare-user" in spaces else []
    for right in run_spaces.CAPABILITIES:
        options += ["--cap-add", right]
    for place in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        options += ["--ro-bind-try", place, place]
    for place in bubblewrap.read_only_folders():
        options += ["--ro-bind", place, place]
    return [
        *options,
        "--dir",
        CACHE,
        "--chdir",
        "/tmp",
        "--remount-ro",
        "/proc",
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--",
    ]
