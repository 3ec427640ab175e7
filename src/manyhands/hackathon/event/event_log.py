"""The log of an event: one JSON object a line, appended under a lock, never changed.

A line is on the disk before anybody is told of it. A process that is killed in the middle of one leaves a line without
its end, which is passed over: no beginning of a JSON object is one itself. Lines of two processes never mix.
"""

import fcntl
import json
import os
from contextlib import contextmanager
from pathlib import Path

from manyhands.hackathon.event.event_lines import is_line

NAME, LOCK = "event.jsonl", "event.lock"


class Log:
    """The log in a folder. Locks hold among the processes of one machine."""

    def __init__(self, folder):
        self.path, self.lock = Path(folder) / NAME, Path(folder) / LOCK

    def read(self):
        """All lines, the oldest first, as dictionaries."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return [line for line in map(_line, data.split(b"\n")) if line is not None]

    @contextmanager
    def changing(self):
        """Within it no other process appends; gives all lines, and what appends one."""
        with open(self.lock, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.read(), self._append

    def _append(self, line):
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with open(handle, "rb+", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            cut_off = size and os.pread(handle, 1, size - 1) != b"\n"
            left = memoryview((b"\n" if cut_off else b"") + json.dumps(line).encode() + b"\n")
            while left:
                left = left[file.write(left):]
            os.fsync(handle)


def _line(data):
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if is_line(found) else None
