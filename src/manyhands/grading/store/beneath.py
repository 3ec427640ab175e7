"""Reading below a folder that somebody else may change at this very moment.

What was looked at by its name may be something else when it is opened: a folder on the way has
become a link, a file a pipe. So every step is opened from the open folder before it, never through
a link and never waiting, and what was opened is judged, not what was seen.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from manyhands.grading.submission_limits import DEPTH, ENTRIES, PATH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    Kind = Literal["file", "folder", "link", "other", "unreadable", "deep"]

MORE = f"more than {ENTRIES} files and folders"
_STEP = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = _STEP | os.O_DIRECTORY


@dataclass(frozen=True)
class FolderEntry:
    """Something in a folder: its path there, what it is, and its size.

    It is a "file", "folder", "link", "other", "unreadable" or "deep".
    """

    name: str
    kind: Kind
    size: int = 0


class Below:
    """An open folder, and what is reached from it; a context manager.

    Raises OSError where there is no folder, or a link to one.

    own: reads no file but those of the folder's owner, for a hard link may lead to somebody else's.
    `owner` is the user number of the folder; `changed` the time at which the latest change was made
    to what has been looked at.
    """

    def __init__(self, folder: str | Path, own: bool = False) -> None:
        self.handle, self.own = os.open(folder, _FOLDER), own
        status = os.fstat(self.handle)
        self.owner, self.changed = status.st_uid, status.st_ctime

    def __enter__(self) -> Below:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)

    def look(self, name: str) -> FolderEntry | None:
        """What lies at a path inside, or None."""
        *folders, last = name.split("/")
        try:
            handle = self._opened("/".join(folders), _FOLDER)
            try:
                return self._found(name, os.stat(last, dir_fd=handle, follow_symlinks=False))
            finally:
                os.close(handle)
        except OSError:
            return None

    def files(self, left_out: Callable[[str], bool] = lambda name: False) -> list[FolderEntry]:
        """All that are no folders, in order, and folders that could not be looked into.

        `left_out(name)` tells those to be passed over.
        """
        files: list[FolderEntry] = []
        seen: set[str] = set()
        folders = [""]
        while folders and len(seen) < ENTRIES:
            for entry in self._inside(folders.pop(), ENTRIES - len(seen)):
                if entry.kind not in ("deep", "unreadable") and entry.name in seen:
                    # changed while it was listed: two kinds of one name would be two things in one
                    # place
                    continue
                seen.add(entry.name)
                if entry.kind != "folder":
                    files.append(entry)
                elif not left_out(entry.name.rpartition("/")[2]):
                    folders.append(entry.name)
        files.sort(key=lambda entry: entry.name)
        return files if len(seen) < ENTRIES else [*files, FolderEntry(MORE, "deep")]

    def _inside(self, folder: str, most: int) -> list[FolderEntry]:
        """[FolderEntry] in a folder, at most so many; of the folder itself where that cannot be."""
        if folder.count("/") >= DEPTH or len(os.fsencode(folder)) > PATH_BYTES:
            return [FolderEntry(folder, "deep")]
        try:
            handle = self._opened(folder, _FOLDER)
        except OSError:
            return [FolderEntry(folder or ".", "unreadable")]
        try:
            with os.scandir(handle) as entries:
                return [
                    self._look(f"{folder}/{entry.name}" if folder else entry.name, entry)
                    for entry in islice(entries, most)
                ]
        except OSError:
            return [FolderEntry(folder or ".", "unreadable")]
        finally:
            os.close(handle)

    def _look(self, name: str, entry: os.DirEntry[str]) -> FolderEntry:
        try:
            return self._found(name, entry.stat(follow_symlinks=False))
        except OSError:
            return FolderEntry(name, "unreadable")

    def _found(self, name: str, status: os.stat_result) -> FolderEntry:
        self.changed = max(self.changed, status.st_ctime)
        kinds: dict[int, Kind] = {
            stat.S_IFREG: "file",
            stat.S_IFDIR: "folder",
            stat.S_IFLNK: "link",
        }
        kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
        return FolderEntry(name, kind, status.st_size if kind == "file" else 0)

    def read(self, name: str, most: int) -> bytes:
        """The bytes of a plain file, at most one more than `most`. Raises OSError."""
        with os.fdopen(self._opened(name, _STEP), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError("it is not a plain file")
            if self.own and status.st_uid != self.owner:
                raise PermissionError("it belongs to a different user")
            content = file.read(min(most, status.st_size) + 1)
            self.changed = max(self.changed, os.fstat(file.fileno()).st_ctime)
        return content

    def link(self, name: str) -> str:
        """Where a link leads to. Raises OSError."""
        *folders, last = name.split("/")
        handle = self._opened("/".join(folders), _FOLDER)
        try:
            return os.readlink(last, dir_fd=handle)
        finally:
            os.close(handle)

    def _opened(self, name: str, flags: int) -> int:
        """A descriptor of what lies at a path inside ("" is the folder itself)."""
        here, parts = os.dup(self.handle), name.split("/") if name else []
        for number, part in enumerate(parts, 1):
            try:
                following = os.open(part, flags if number == len(parts) else _FOLDER, dir_fd=here)
            finally:
                os.close(here)
            here = following
        return here
