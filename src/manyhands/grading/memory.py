"""Limits on a tree of processes: memory by cgroup (version 2 or 1) where we may make one, else by watching the processes."""

import os
import threading
import uuid
from contextlib import suppress
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
EVERY_S = 0.5


class NoGroup:
    """No cgroup can be made here: the watcher alone guards the limit."""

    name = "watching the processes"

    def wrap(self, command):
        return command

    def broken(self):
        return False

    def close(self):
        pass


class Group:
    """A cgroup of our own with a memory limit; the command that `wrap` returns puts itself into it before it starts."""

    def __init__(self, folder, limit_file, limit_bytes, swap_file, swap_bytes, count):
        self.folder, self.count = folder, count
        self.name = "a control group"
        folder.mkdir()
        try:
            (folder / limit_file).write_text(str(limit_bytes))
            with suppress(OSError):  # a kernel without accounting of swap
                (folder / swap_file).write_text(str(swap_bytes))
        except OSError:
            folder.rmdir()
            raise

    def wrap(self, command):
        return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.folder / "cgroup.procs"), *command]

    def broken(self):
        """Whether the kernel has killed something for memory."""
        with suppress(OSError, ValueError):
            return self.count(self.folder) > 0
        return False

    def close(self):
        with suppress(OSError):
            self.folder.rmdir()


def _kills_v2(folder):
    return _field(folder / "memory.events", "oom_kill")


def _kills_v1(folder):
    return _field(folder / "memory.oom_control", "oom_kill")


def _field(path, name):
    fields = dict(line.split() for line in path.read_text().splitlines())
    return int(fields[name])


def memory_group(limit_bytes):
    """A cgroup below our own with this limit, or `NoGroup` where we may not make one."""
    for make in (_version_2, _version_1):
        with suppress(OSError, StopIteration):
            return make(limit_bytes)
    return NoGroup()


def _own(controllers):
    """Our own path in the hierarchy with these controllers ("" is version 2)."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    rows = (line.split(":", 2) for line in lines)
    return next(path for _, names, path in rows if names.split(",") == [controllers] or controllers in names.split(",")).lstrip("/")


def _new_name():
    return f"manyhands-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def _version_2(limit_bytes):
    folder = CGROUPS / _own("") / _new_name()
    return Group(folder, "memory.max", limit_bytes, "memory.swap.max", 0, _kills_v2)


def _version_1(limit_bytes):
    folder = CGROUPS / "memory" / _own("memory") / _new_name()
    return Group(folder, "memory.limit_in_bytes", limit_bytes, "memory.memsw.limit_in_bytes", limit_bytes, _kills_v1)


class Watcher(threading.Thread):
    """Looks at a process and its descendants twice a second; too much memory or too many of them: all are killed.

    `reason` is then "memory" or "processes", else None.
    """

    def __init__(self, pid, limit_bytes, limit_processes):
        super().__init__(daemon=True)
        self.pid, self.limit_bytes, self.limit_processes = pid, limit_bytes, limit_processes
        self.reason = None
        self._stop_now = threading.Event()

    def run(self):
        while not self._stop_now.wait(EVERY_S):
            tree = family(self.pid)
            if len(tree) > self.limit_processes:
                self.reason = "processes"
            elif used_bytes(tree, enough=self.limit_bytes) > self.limit_bytes:
                self.reason = "memory"
            if self.reason:
                kill(tree)
                return

    def stop(self):
        self._stop_now.set()
        self.join()


def family(pid):
    """The process and all its descendants, those that still are."""
    with suppress(psutil.Error):
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    return []


def used_bytes(processes, enough):
    """Their memory; pages that they share count once (that is asked only when the quick sum is above `enough`)."""
    quick = sum(_ask(process, lambda one: one.memory_info().rss) for process in processes)
    if quick <= enough:
        return quick
    return sum(_ask(process, lambda one: one.memory_full_info().pss) for process in processes)


def _ask(process, question):
    with suppress(psutil.Error, AttributeError):
        return question(process)
    return 0


def kill(processes):
    """Kill them all and wait until they are gone."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
