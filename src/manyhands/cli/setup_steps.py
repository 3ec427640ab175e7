"""Steps of the set-up: show progress, keep a log, and explain a step that failed.

The explanation names the step, the reason, and what to do.

Standard library only, and readable by Python 3.9: the set-up runs this before anything is
installed.
"""

from __future__ import annotations

import fcntl
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO, TextIO

    Watch = Callable[[str], str | None]  # of a line of a command: what to show of it


# (what the log shows, why the step failed, what to do); the first that fits is told.
REASONS = [
    (
        r"No space left on device|Errno 28",
        "the disk is full",
        (
            "make room (5 GB for .venv; TMPDIR and the cache folder of pip need 1 GB each), then "
            "type the same command again"
        ),
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError|invalid peer certificate",
        "the package index's certificate is not trusted here",
        (
            "tell pip about your network's certificate (PIP_CERT=/path/to/ca.pem), then type the "
            "same command again"
        ),
    ),
    (
        r"Temporary failure in name resolution|Name or service not"
        r" known|NewConnectionError|Network is "
        r"unreachable|Connection refused"
        r"|Connection reset|ConnectTimeoutError|Read timed out|ReadTimeoutError|ProxyError|Max"
        r" retries "
        r"exceeded|NameResolutionError|are you offline|dns error|error sending request"
        r"|network timeout|HTTP status server error",
        "there is no network, or the package index cannot be reached",
        (
            "check the network (behind a proxy set HTTPS_PROXY; for a mirror set PIP_INDEX_URL), "
            "then type the same command again"
        ),
    ),
    (
        r"(?:No matching distribution found for|Because there is no version of"
        r"|Because(?= \S+ (?:was not found|has no wheels))) (\S+)",  # pip's words, and uv's
        "the package index does not have {0}",
        (
            "check PIP_INDEX_URL and TORCH_INDEX or TORCH_FIND_LINKS; the pinned version must be "
            "available for this Python and platform"
        ),
    ),
    (
        r"ensurepip is not available|No module named '?(?:venv|ensurepip)",
        "this Python lacks the venv module",
        "install it (Debian: apt-get install python3-venv), then type the same command again",
    ),
    (
        r"Python\.h: No such file",
        "Python's header files are missing",
        "install them (Debian: apt-get install python3-dev)",
    ),
    (
        r"Killed signal terminated program|Cannot allocate memory|MemoryError|std::bad_alloc",
        "there was not enough memory",
        (
            "close other programs, or build with one compiler at a time: MANYHANDS_BUILD_JOBS=1 "
            "make setup"
        ),
    ),
    (
        r"No CMAKE_CXX_COMPILER could be found|command 'g\+\+' failed|g\+\+: not found",
        "no C++ compiler was found",
        "install one (Debian: apt-get install g++)",
    ),
    (
        r"Could not find MPI|MPI_CXX \(missing",
        "MPI's compiler mpicxx was not found",
        "run `make clean`, then type the same command again",
    ),
    (
        r"Permission denied|Errno 13",
        "a file or folder is not writable",
        "see the log for its name; was an earlier set-up run as another user?",
    ),
]


class StepFailedError(Exception):
    """A step that did not work: why, and what the reader can do."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


def explain(log_text: str) -> tuple[str, str]:
    """(why, what to do) from the output of a failed command."""
    for pattern, why, remedy in REASONS:
        match = re.search(pattern, log_text)
        if match:
            return why.format(*match.groups()), remedy
    return "a command failed", "read the last lines of the log, and report them if they do not help"


def duration(seconds: float) -> str:
    """12 s, or 3 min 20 s."""
    seconds = int(seconds + 0.5)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"


def size_of(folder: str | Path) -> int:
    """Return the bytes that the files below a folder take on the disk.

    Links and what vanishes meanwhile do not count.
    """
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


@contextmanager
def measure_growth(folder: str | Path | None) -> Iterator[Callable[[], str]]:
    """Yields a function that tells how much larger the folder is now: "1.2 GB written", or "".

    A thread measures it, since a slow disk may need many seconds for that. It spends a tenth of its
    time measuring.
    """
    done, grown = threading.Event(), [0]

    def measure(filled: str | Path) -> None:
        before, pause_s = size_of(filled), 2.0
        while not done.wait(pause_s):
            begun = time.monotonic()
            grown[0] = size_of(filled) - before
            pause_s = max(2, 9 * (time.monotonic() - begun))

    def amount() -> str:
        megabytes = grown[0] / 1e6
        if megabytes < 10:
            return ""
        return (
            f"{megabytes:.0f} MB written"
            if megabytes < 1000
            else f"{megabytes / 1000:.1f} GB written"
        )

    if folder is not None:
        threading.Thread(target=measure, args=(folder,), daemon=True).start()
    try:
        yield amount
    finally:
        done.set()


@contextmanager
def hold_set_up_lock(path: Path) -> Iterator[None]:
    """`make lab` and `make test` typed at once: the second waits for the first."""
    with open(path, "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up of this clone is running; waiting for it ...", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield


class Steps:
    """Numbered steps on one terminal.

    `begin` and `end` enclose each step, and `call` runs each of its commands.
    """

    def __init__(self, total: int, log_path: Path, stream: TextIO | None = None) -> None:
        self.total, self.number, self.name = total, 0, ""
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self.log_path = log_path
        log_path.parent.mkdir(parents=True, exist_ok=True)
        self.log = open(log_path, "w", encoding="utf-8", errors="replace")  # noqa: SIM115 - open for all steps
        self.started = self.shown = 0.0

    def begin(self, name: str) -> None:
        """Start the next step."""
        self.number += 1
        self.name = name
        self.started = time.monotonic()
        self.log.write(f"\n== step {self.number} of {self.total}: {name}\n")
        self.show("", force=self.live)

    def show(self, detail: str, force: bool = False) -> None:
        """Where the step is: redrawn each second on a terminal, a line every 15 s elsewhere."""
        now = time.monotonic()
        if not force and now - self.shown < (0.2 if self.live else 15):
            return
        self.shown = now
        line = (
            f"[{self.number}/{self.total}] {self.name}: {detail}".rstrip(": ")
            + f" ({duration(now - self.started)})"
        )
        self.stream.write("\r\x1b[K" + line[:110] if self.live else line + "\n")
        self.stream.flush()

    def end(self, detail: str) -> None:
        """The step is done; its line stays."""
        line = (
            f"[{self.number}/{self.total}] {self.name}: {detail} "
            f"({duration(time.monotonic() - self.started)})"
        )
        self.stream.write(("\r\x1b[K" if self.live else "") + line + "\n")
        self.stream.flush()
        self.shown = time.monotonic()

    def note(self, text: str) -> None:
        """A remark that stays on the screen."""
        self.stream.write(("\r\x1b[K" if self.live else "") + "      " + text + "\n")
        self.stream.flush()

    def call(
        self,
        command: Sequence[object],
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        watch: Watch | None = None,
        into: Path | None = None,
    ) -> None:
        """Run one command into the log; `watch(line)` may turn a line into the detail to show.

        Raises StepFailedError.

        `into`: the folder that it fills; how much larger it has become is shown, too.
        """
        self.log.write("$ " + " ".join(map(str, command)) + "\n")
        process = subprocess.Popen(
            [str(part) for part in command],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        recent: deque[str] = deque(maxlen=3000)
        try:
            with measure_growth(into) as amount:
                assert process.stdout is not None  # it is a pipe
                self._follow(process.stdout, watch, recent, amount)
            code = process.wait()
        finally:
            self._end_group(process)
        if code != 0:
            raise StepFailedError(*explain("\n".join(recent)))

    def _follow(
        self, pipe: IO[bytes], watch: Watch | None, recent: deque[str], amount: Callable[[], str]
    ) -> None:
        """Copy the command's output to the log and to `recent` until it ends.

        The display is kept alive meanwhile.
        """
        detail, rest = "", b""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                if selector.select(timeout=1):
                    chunk = os.read(pipe.fileno(), 65536)
                    if not chunk:
                        break
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        text = line.decode("utf-8", "replace")
                        self.log.write(text + "\n")
                        recent.append(text)
                        detail = (watch and watch(text)) or detail
                    self.log.flush()
                self.show(", ".join(filter(None, [detail, amount()])))
        recent.append(rest.decode("utf-8", "replace"))
        self.log.write(recent[-1])
        self.log.flush()
        pipe.close()

    @staticmethod
    def _end_group(process: subprocess.Popen[bytes]) -> None:
        """Leave no compiler behind when the set-up is interrupted."""
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass

    def describe_failure(self, error: StepFailedError) -> str:
        """The report of a failed step, with the last lines of the log."""
        with suppress(OSError):  # the disk is full: what is there must do
            self.log.flush()
        lines = (
            self.log_path.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-12:]
        )
        report = [
            f"Step [{self.number}/{self.total}] {self.name} failed.",
            f"  why:  {error.why}",
            f"  do:   {error.remedy}",
        ]
        # a command has run in this step
        if any(line.startswith("$ ") for line in lines) or not lines[-1].startswith("== step"):
            report += [
                f"  log:  {self.log_path}; its last lines:",
                *("        | " + line[:160] for line in lines),
            ]
        return "\n".join(report)
