"""What this machine has: processors, memory, programs."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

CELL_S = 180  # the limit of one cell that is built, compared or graded
# of a cluster's start: a cell has time to say that it came to nothing
CLUSTER_START_S = CELL_S - 30


def processors() -> int:
    """Return how many processors this process may use.

    They are fewer than the machine has where `taskset`, Slurm or the cpuset of a container leaves
    it only some.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def crowding() -> float:
    """Return by what factor work takes longer here now because processes share the processors.

    It is at least 1 and at most 50.
    """
    try:
        return min(max(os.getloadavg()[0] / processors(), 1.0), 50.0)
    except OSError:
        return 1.0


def memory_gb() -> int:
    """The machine's memory in GB, or a container's limit where that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            total = min(total, int(Path(limit).read_text()))
    return round(total / 1e9)


def local_time(when: float | datetime, seconds: bool = False) -> str:
    """Return `2026-12-01 18:00 JST`, the time in this machine's time zone.

    The variable TZ names another zone (`TZ=Asia/Tokyo`).

    when: seconds since 1970, or a datetime, which is in UTC where it has no zone.
    """
    if not isinstance(when, datetime):
        when = datetime.fromtimestamp(when, timezone.utc)
    when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return when.astimezone().strftime(f"%Y-%m-%d %H:%M{':%S' if seconds else ''} %Z")


def program(name: str) -> str | None:
    """Return the path of a program, or None.

    It is looked for on PATH, beside this Python, and in the folders of administration.
    """
    places = [os.environ.get("PATH", ""), str(Path(sys.executable).parent), "/usr/sbin", "/sbin"]
    return shutil.which(name, path=os.pathsep.join(places))


def says(*command: str, timeout_s: float = 10) -> str | None:
    """What a command prints, or None where it is missing or fails."""
    path = program(command[0])
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def progress_file(work: str | Path) -> Path:
    """Return the file of the learner's progress in the folder `work` (`manyhands.checks.progress`).

    It changes whenever a cell of a unit has run.
    """
    return Path(work) / ".manyhands" / "progress.json"


def horovod_progress(root: str | Path) -> Path:
    """The file in which the set-up writes how far Horovod's build is; it exists only meanwhile."""
    return Path(root) / ".manyhands" / "horovod.progress"


def write_progress(path: Path, detail: str) -> None:
    """Write how far a build is, in one rename; an empty text removes the file.

    What cannot be written ends no build.
    """
    with suppress(OSError):
        if not detail:
            path.unlink(missing_ok=True)
        elif read_progress(path) != detail:
            new = path.with_suffix(f".{os.getpid()}")
            new.write_text(detail)
            os.replace(new, path)


def read_progress(path: Path) -> str:
    """How far the build is that writes this file; "" if it has not said so."""
    try:
        return path.read_text()
    except OSError:
        return ""


@contextmanager
def hold_horovod_lock(root: str | Path, timeout_s: float = 0.0) -> Iterator[bool]:
    """Yield whether this process now holds the lock of the build of Horovod in the background."""
    path, until = Path(root) / ".manyhands" / "horovod.lock", time.monotonic() + timeout_s
    path.parent.mkdir(exist_ok=True)
    with open(path, "w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine = True
            except BlockingIOError:
                mine = False
            except OSError:
                mine = True  # a file system without locks
            if mine or time.monotonic() >= until:
                break
            time.sleep(0.1)
        yield mine


def horovod_build(root: str | Path) -> str:
    """How far the build of Horovod in the background is, in words; "" if none runs.

    It needs to write nothing.
    """
    try:
        with open(Path(root) / ".manyhands" / "horovod.lock") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        pass
    except OSError:
        return ""  # there was no build here, or the file system has no locks
    return read_progress(horovod_progress(root)) or "in progress"
