"""Limits on a tree of processes, and one on the grader's own memory.

The tree's are set by cgroup (version 2 or 1) where we may make one, else by watching the processes.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CGROUPS = Path("/sys/fs/cgroup")
EVERY_S = 0.5


def limit_own(more_bytes: int) -> None:
    """Let this process have so much memory beside what it has now.

    Where it asks for more, it gets a MemoryError. Only Linux can do that.
    """
    if sys.platform == "linux":
        _set_own(psutil.Process().memory_info().data + more_bytes)


@contextmanager
def no_own_limit() -> Iterator[None]:
    """A process that is started in the block does not get the limit of this one."""
    limit, most = resource.getrlimit(resource.RLIMIT_DATA)
    _set_own(most)
    try:
        yield
    finally:
        _set_own(limit)


def _set_own(limit: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most)
    )


class NoGroup:
    """No cgroup can be made here: the watcher alone guards the limits."""

    name = "watching the processes"

    def wrap(self, command: list[str]) -> list[str]:
        """The command as it is."""
        return command

    def broken(self) -> bool:
        """False, because nothing kills by itself here."""
        return False

    def members(self) -> Iterable[psutil.Process]:
        """None, because the watcher finds the processes by their parents."""
        return []

    def close(self) -> None:
        """There is nothing to remove."""


class Group:
    """A cgroup of our own: one folder for each of its limits, which version 2 has together in one.

    The command that `wrap` returns puts itself into it before it starts.
    """

    name = "a control group"

    def __init__(self, kills: Path, limits: Sequence[tuple[Path, int, bool]]) -> None:
        """Make the folders, and set the limits.

        `kills` is the file that counts what was killed for memory; `limits` are (file, number,
        whether it must be there).
        """
        self.kills, self.folders = kills, list(dict.fromkeys(file.parent for file, _, _ in limits))
        try:
            for folder in self.folders:
                _forget_the_dead(folder.parent)
                folder.mkdir()
            for file, number, needed in limits:
                if needed or file.exists():
                    _set(file, number)
        except OSError:
            self.close()
            raise

    def wrap(self, command: list[str]) -> list[str]:
        """The command that enters the group and then becomes this command."""
        script = " && ".join(
            [*(f'echo $$ > "{folder}/cgroup.procs"' for folder in self.folders), 'exec "$@"']
        )
        return ["/bin/sh", "-c", script, "sh", *command]

    def broken(self) -> bool:
        """Whether the kernel has killed something for memory."""
        with suppress(OSError, ValueError, KeyError):
            return (
                int(dict(line.split() for line in self.kills.read_text().splitlines())["oom_kill"])
                > 0
            )
        return False

    def members(self) -> Iterator[psutil.Process]:
        """The processes in it."""
        with suppress(OSError):
            for pid in (self.folders[0] / "cgroup.procs").read_text().split():
                with suppress(psutil.Error):
                    yield psutil.Process(int(pid))

    def close(self) -> None:
        """Remove the group's folders, which must have no process any more."""
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()


def _set(file: Path, number: int) -> None:
    """Write a limit into a file that is there: what can be made here is no cgroup."""
    handle = os.open(file, os.O_WRONLY)
    try:
        os.write(handle, str(number).encode())
    finally:
        os.close(handle)


def _forget_the_dead(parent: Path) -> None:
    """Remove the groups of graders that were killed; one that still has processes stays."""
    for folder in parent.glob("manyhands-*"):
        with suppress(OSError, ValueError):
            if not psutil.pid_exists(int(folder.name.split("-")[1])):
                folder.rmdir()


def memory_group(limit_bytes: int, tasks: int) -> Group | NoGroup:
    """Make a cgroup below our own with these limits of memory and of tasks (threads count).

    Gives `NoGroup` where we may not make one.
    """
    for make in (_version_2, _version_1):
        with suppress(OSError, LookupError):
            return make(f"manyhands-{os.getpid()}-{uuid.uuid4().hex[:8]}", limit_bytes, tasks)
    return NoGroup()


def own_group(controller: str) -> str:
    """Our own path in the hierarchy with this controller ("" is version 2).

    Raises LookupError where there is none.
    """
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path.lstrip("/")
    raise LookupError(controller)


def _version_2(name: str, limit_bytes: int, tasks: int) -> Group:
    folder = CGROUPS / own_group("") / name
    return Group(
        folder / "memory.events",
        [
            (folder / "memory.max", limit_bytes, True),
            (folder / "memory.swap.max", 0, False),
            (folder / "pids.max", tasks, False),
        ],
    )


def _version_1(name: str, limit_bytes: int, tasks: int) -> Group:
    memory, pids = (
        CGROUPS / "memory" / own_group("memory") / name,
        CGROUPS / "pids" / own_group("pids") / name,
    )
    return Group(
        memory / "memory.oom_control",
        [
            (memory / "memory.limit_in_bytes", limit_bytes, True),
            (memory / "memory.memsw.limit_in_bytes", limit_bytes, False),
            (pids / "pids.max", tasks, True),
        ],
    )


class Watcher(threading.Thread):
    """Looks at a process and its descendants twice a second.

    If they use too much memory, or are too many, all are killed; `reason` is then "memory" or
    "processes", else None.
    """

    def __init__(self, pid: int, limit_bytes: int, limit_processes: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.limit_bytes, self.limit_processes = pid, limit_bytes, limit_processes
        self.reason: str | None = None
        self._stop_now = threading.Event()

    def run(self) -> None:
        """Look, until `stop` is called or the processes were killed."""
        while not self._stop_now.wait(EVERY_S):
            tree = process_tree(self.pid)
            if len(tree) > self.limit_processes:
                self.reason = "processes"
            elif used_bytes(tree, enough=self.limit_bytes) > self.limit_bytes:
                self.reason = "memory"
            if self.reason:
                kill(tree)
                return

    def stop(self) -> None:
        """End the watching, and wait until it has ended."""
        self._stop_now.set()
        self.join()


def process_tree(pid: int) -> list[psutil.Process]:
    """The process and all its descendants, those that still are."""
    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    return []


def used_bytes(processes: Sequence[psutil.Process], enough: int) -> int:
    """Their memory, where pages that they share count once.

    That is asked only when the quick sum is above `enough`.
    """
    quick = sum(_ask(process, lambda member: member.memory_info().rss) for process in processes)
    if quick <= enough:
        return quick
    return sum(_ask(process, lambda member: member.memory_full_info().pss) for process in processes)


def _ask(process: psutil.Process, question: Callable[[psutil.Process], int]) -> int:
    with suppress(psutil.Error, AttributeError):
        return question(process)
    return 0


def kill(processes: Sequence[psutil.Process]) -> None:
    """Kill them all and wait until they are gone."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
