"""What one person may use: processors, memory, processes, disk.

Control groups hold it where the machine lets us make them.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


CGROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@dataclass(frozen=True)
class Limits:
    """For each person. `cpus` are processors, 1.5 is one and a half."""

    cpus: float = 2.0
    memory_bytes: int = 4 * 2**30
    processes: int = 1000  # threads count too
    disk_bytes: int = 2 * 2**30


class Way(Protocol):
    """How the limits of one person's processes are held; `unit` is a name for them."""

    name: str

    def __init__(self, unit: str) -> None: ...

    def wrap(self, command: Sequence[str], limits: Limits) -> list[str]:
        """The command that runs this one under the limits."""

    def close(self) -> bool:
        """Whether nothing of it is left."""


class Systemd:
    """A scope of systemd's for each person."""

    name = "systemd (control groups)"

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def wrap(self, command: Sequence[str], limits: Limits) -> list[str]:
        """Return the command that runs another one within these limits."""
        facts = {
            "MemoryMax": limits.memory_bytes,
            "MemorySwapMax": 0,
            "TasksMax": limits.processes,
            "CPUQuota": f"{limits.cpus * 100:.0f}%",
        }
        return [
            shutil.which("systemd-run") or "systemd-run",
            "--scope",
            "--quiet",
            "--collect",
            f"--unit={self.unit}",
            *(word for name, value in facts.items() for word in ("-p", f"{name}={value}")),
            "--",
            *command,
        ]

    def close(self) -> bool:
        """Remove what held the limits; returns whether it is gone."""
        return True


class Version1:
    """Groups made by hand in the hierarchies of version 1."""

    name = "control groups, version 1"

    def __init__(self, unit: str) -> None:
        from manyhands.isolation.process_limits import own_group

        self.folders = {
            controller: CGROUPS / controller / own_group(controller) / unit
            for controller in ("memory", "pids", "cpu")
        }

    def wrap(self, command: Sequence[str], limits: Limits) -> list[str]:
        """Raises OSError where we may not make groups."""
        for folder in self.folders.values():
            folder.mkdir(exist_ok=True)
        (self.folders["memory"] / "memory.limit_in_bytes").write_text(str(limits.memory_bytes))
        with suppress(OSError):  # a kernel that does not count swap
            (self.folders["memory"] / "memory.memsw.limit_in_bytes").write_text(
                str(limits.memory_bytes)
            )
        (self.folders["pids"] / "pids.max").write_text(str(limits.processes))
        (self.folders["cpu"] / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self.folders["cpu"] / "cpu.cfs_quota_us").write_text(str(int(limits.cpus * PERIOD_US)))
        joining = "".join(
            f'echo $$ > "{folder}/cgroup.procs" && ' for folder in self.folders.values()
        )
        return ["/bin/sh", "-c", joining + 'exec "$@"', "sh", *command]

    def close(self) -> bool:
        """Remove the groups; returns whether they are gone.

        For a moment after its last process has ended, one may still be held.
        """
        for folder in self.folders.values():
            with suppress(OSError):
                folder.rmdir()
        return not any(folder.exists() for folder in self.folders.values())


class ByNumber:
    """Limits without control groups.

    The kernel counts the processes of the person's number; memory and processors are not limited.
    """

    name = (
        "limits on the person's processes only (no control groups here: memory and processors are "
        "NOT limited)"
    )

    def __init__(self, unit: str) -> None:
        pass

    def wrap(self, command: Sequence[str], limits: Limits) -> list[str]:
        """Return the command that runs another one with a limit of processes."""
        return [shutil.which("prlimit") or "prlimit", f"--nproc={limits.processes}", "--", *command]

    def close(self) -> bool:
        """Do nothing, because nothing is left; returns True."""
        return True


def way() -> type[Way]:
    """The best of these that works here: a class."""
    if Path("/run/systemd/system").is_dir() and shutil.which("systemd-run"):
        return Systemd
    with suppress(OSError, LookupError):
        trial = Version1(f"manyhands-trial-{os.getpid()}")
        trial.wrap([], Limits())
        trial.close()
        return Version1
    return ByNumber


def limit_files(limits: Limits) -> None:
    """Limit the size of files and forbid memory dumps, in the child before it starts anything.

    No file may be larger than the disk limit.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.disk_bytes, limits.disk_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def disk_used(folder: str | Path) -> int:
    """Bytes on disk of all files below a folder, however deep.

    Links are not followed, and a file with two names counts once.
    """
    done = subprocess.run(
        ["du", "--summarize", "--block-size=1", "--", str(folder)],
        capture_output=True,
        text=True,
        errors="replace",
    )
    # what vanishes meanwhile is passed over
    return int(done.stdout.split()[0]) if done.stdout else 0
