"""The log of an event: one JSON object a line, appended under a lock, never changed.

A line is on the disk before anybody is told of it. A process that is killed in the middle of one
leaves a line without its end, which is passed over: no beginning of a JSON object is one itself.
Lines of two processes never mix. The log is read once and then followed, so a request costs what
was appended since the last one, however long the log is.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hackathon.event.event_lines import is_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from manyhands.hackathon.event.event_lines import Line


NAME, LOCK = "event.jsonl", "event.lock"
MARK_BYTES = 256  # so many bytes before the place read to tell whether it is still the same file


class Log:
    """The log in a folder. Locks hold among the processes of one machine."""

    def __init__(self, folder: str | Path) -> None:
        self.path, self.lock = Path(folder) / NAME, Path(folder) / LOCK
        self.reading = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self.lines: list[Line] = []
        self.place, self.mark = 0, b""
        self.file: tuple[int, int] | None = None

    def read(self) -> list[Line]:
        """All lines, the oldest first, as dictionaries.

        It is the same list each time, and has grown at its end; a new one where the file was
        replaced or cut off.
        """
        with self.reading:
            try:
                with open(self.path, "rb") as file:
                    self._follow(file)
            except FileNotFoundError:
                self._forget()
            return self.lines

    def _follow(self, file: BinaryIO) -> None:
        """Read what was appended.

        The beginning of a line is read again when there is more of it.
        """
        if not self._goes_on(file):
            self._forget()
        self.file = _identity(file)
        file.seek(self.place)
        data = file.read()
        end = data.rfind(b"\n") + 1
        whole = data[:end] if _line(data[end:]) is None else data
        self.place += len(whole)
        self.mark = (self.mark + whole)[-MARK_BYTES:]
        self.lines += [line for line in map(_line, whole.split(b"\n")) if line is not None]

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the file is the one that was read, with all that was read."""
        file.seek(self.place - len(self.mark))
        return self.file == _identity(file) and file.read(len(self.mark)) == self.mark

    @contextmanager
    def changing(self) -> Iterator[tuple[list[Line], Callable[[Line], None]]]:
        """Within it no other process appends; gives all lines, and what appends one."""
        with open(self.lock, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.read(), self._append

    def _append(self, line: Line) -> None:
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with open(handle, "rb+", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            cut_off = size and os.pread(handle, 1, size - 1) != b"\n"
            left = memoryview((b"\n" if cut_off else b"") + json.dumps(line).encode() + b"\n")
            while left:
                left = left[file.write(left) :]
            os.fsync(handle)


def _identity(file: BinaryIO) -> tuple[int, int]:
    facts = os.fstat(file.fileno())
    return facts.st_dev, facts.st_ino


def _line(data: bytes) -> Line | None:
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return line if is_line(line) else None
