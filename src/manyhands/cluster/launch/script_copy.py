"""A copy of the repository of a script, so that running the script changes nothing.

The copy is bounded. What does not fit into it is a link that leads to the original through a
read-only mount (`process_guard.mount_originals`), so that no library can write there. Before Python
writes to it, a copy takes the link's place (`as_main`). Where the system allows no such mount, what
does not fit is left out.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.cluster.launch.command_lines import GUARD
from manyhands.cluster.launch.process_guard import COPY, ORIGINALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEFT_OUT = {
    "__pycache__",
    ".git",
    ".venv",
    "venv",
    "node_modules",
    ".ipynb_checkpoints",
    ".tox",
    ".mypy_cache",
}
COPIED_BYTES, COPIED_FILES = 4 * 2**30, 40_000  # of a whole copy
PART_OF_FREE = 4  # a copy takes one part in so many of what is free on the disk for temporary files
LARGE_BYTES = 2 * 2**30  # of a file: from here on it is linked
FOLDER_FILES = 20_000  # of a folder, with all below it
LOOKED_THROUGH = 20  # a large folder with so many folders in it is copied entry by entry
PROJECT = ("pyproject.toml", "setup.py")
PREFIX = "manyhands-copy-"  # of a copy's folder
# asks Linux to let two files share their blocks until one of them is written to
FICLONE = 0x40049409


@dataclass
class Place:
    """A script in its copy.

    `left_out` and `linked` are paths in the copy that it lacks, or that are read-only links.
    """

    script: Path
    root: Path  # of the copy
    original: Path  # the folder that was copied
    start: str = "."  # the folder in which the script is started, from `original` on
    left_out: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    # (a path of the copy, what a reader knows in its place)
    paths: list[tuple[Path | str, str]] = field(default_factory=list)

    def shown(self, text: str) -> str:
        """The same text without the folders of the copy."""
        for path, known in self.paths:
            text = text.replace(f"{path}/", known)
        return text

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """The environment `env` for ranks that run in the copy.

        Where PYTHONPATH led into the folder that was copied, it leads into the copy.
        """

        def in_copy(path: str) -> str:
            whole = Path(path).resolve()
            there = (
                self.root / whole.relative_to(self.original)
                if whole.is_relative_to(self.original)
                else None
            )
            return str(there) if path and there and there.exists() else path

        paths = env.get("PYTHONPATH")
        return (
            {**env, "PYTHONPATH": os.pathsep.join(map(in_copy, paths.split(os.pathsep)))}
            if paths
            else env
        )

    def facts(self) -> str:
        """Where the script ran, as a sentence for a script that has failed."""
        started = "" if self.start == "." else f", in its folder {self.start}"
        lacks = "".join(
            f" {what}: {some(paths)}."
            for what, paths in (
                ("Not in the copy", self.left_out),
                ("Read-only links to the originals", self.linked),
            )
            if paths
        )
        return (
            f"It ran in a copy of the folder {self.original.name or self.original}{started}. The "
            "copy contains nothing from outside that folder, and no .git, .venv and "
            f"__pycache__.{lacks}"
        )


def some(paths: list[str], count: int = 4) -> str:
    """The first of several paths."""
    from manyhands.command_line import printable

    more = len(paths) - count
    return ", ".join(map(printable, paths[:count])) + (f" and {more} more" if more > 0 else "")


def top_level(script: Path, here: Path) -> Path:
    """The folder to be copied for `script`, started in the folder `here`.

    It is the top level of its git repository, or the nearest folder with a `pyproject.toml` or
    `setup.py`; it is `here`, if the script is below it and that is more.
    """
    parents, shared = script.parents, _shared_folders()
    project = next((folder for folder in parents if (folder / ".git").exists()), None) or next(
        (folder for folder in parents if any((folder / name).is_file() for name in PROJECT)),
        script.parent,
    )
    if project in shared:
        project = script.parent
    whole = here in parents and here not in shared and here in project.parents
    return here if whole else project


def _shared_folders() -> tuple[Path, ...]:
    """Folders that hold more than one project, so that they are not copied as a whole."""
    home = Path.home().resolve()
    return home, Path(tempfile.gettempdir()).resolve(), Path(home.anchor)


@contextmanager
def copied(script: str | os.PathLike[str]) -> Iterator[Place]:
    """A `Place` with a copy of `script`, which is removed afterwards.

    Inside, the current folder is the copy of the current folder.
    """
    script, here = Path(script).resolve(), Path.cwd()
    root = top_level(script, here.resolve())
    # as the script sees its current folder
    folder = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX))
    before = {name: os.environ.get(name) for name in (COPY, "PYTHONPATH")}
    try:
        place = Place(Path(), Path(folder, root.name or "script"), root)
        place.script = place.root / script.relative_to(root)
        start = _copy_of(here.resolve(), place, folder, {script.parent, *script.parents})
        place.start = (
            os.path.relpath(start, place.root) if start.is_relative_to(place.root) else str(here)
        )
        place.paths = [(place.script.parent, ""), (place.root, ""), (folder, "")]
        os.environ[COPY] = folder
        os.environ.update(
            place.environment({"PYTHONPATH": before["PYTHONPATH"]} if before["PYTHONPATH"] else {})
        )
        os.chdir(start)
        yield place
    finally:
        os.chdir(here)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder, ignore_errors=True)


def _copy_of(here: Path, place: Place, folder: str, open_folders: set[Path]) -> Path:
    """Make the copy, and a second one of the folder `here`, if that is elsewhere.

    Returns where `here` is copied to.
    """
    maker = _Copier(place, folder, {*open_folders, here, *here.parents})
    maker.copy(place.original, place.root)
    if here.is_relative_to(place.original):
        return place.root / here.relative_to(place.original)
    start = Path(folder, "started-in", here.name or "root")
    if here in _shared_folders() or here in place.original.parents:
        maker.copy(here, start, folders=False)
    else:
        maker.copy(here, start)
    return start


class _Copier:
    """Copies folders, within the bounds of this module."""

    def __init__(self, place: Place, folder: str, open_folders: set[Path]) -> None:
        self.place, self.folder, self.open_folders = place, folder, open_folders
        self.bytes = self.files = 0
        self.most_bytes = min(COPIED_BYTES, shutil.disk_usage(folder).free // PART_OF_FREE)
        self.entered: list[Path] = []  # folders that are being copied

    def copy(self, source: Path, target: Path, folders: bool = True) -> None:
        """Copy a folder.

        With `folders=False`, those in it are links, because it may be too large to look through.
        """
        target.mkdir(parents=True)
        self.entered.append(source)
        for entry in sorted(os.scandir(source), key=lambda item: item.name):
            path = Path(entry.path)
            try:
                if folders or not entry.is_dir():
                    self._entry(entry, path, target / entry.name)
                else:
                    self.link(path, target / entry.name)
            except OSError:  # it may not be read, or is gone by now
                self._lack(path)
        self.entered.pop()

    def _entry(self, entry: os.DirEntry[str], path: Path, target: Path) -> None:
        if (entry.name in LEFT_OUT and path not in self.open_folders) or entry.name.startswith(
            PREFIX
        ):
            return
        if entry.is_symlink():
            self._symlink(path, target)
        elif entry.is_dir():
            self._folder(path, target)
        elif entry.is_file():
            self._file(path, target)
        else:
            self._lack(path)

    def _symlink(self, path: Path, target: Path) -> None:
        """A link within the folder leads to the same place of the copy.

        Of what any other leads to, there is a copy, so that what the script writes through it does
        not reach the original.
        """
        # of a ring, too, where `resolve` may raise
        aim, root = Path(os.path.realpath(path)), self.place.original
        inside = aim.is_relative_to(root) and not LEFT_OUT.intersection(aim.relative_to(root).parts)
        if inside or not aim.exists():
            relative = not os.path.isabs(os.readlink(path))
            os.symlink(
                (
                    os.readlink(path)
                    if relative or not inside
                    else self.place.root / aim.relative_to(root)
                ),
                target,
            )
        elif aim.is_file():
            self._file(aim, target)
        elif aim.is_dir():
            # a copy of it would hold itself
            around = any(folder.is_relative_to(aim) for folder in self.entered)
            take = self.link if around or self._large(aim) else self._folder
            take(aim, target)
        else:
            self._lack(path)

    def _file(self, path: Path, target: Path) -> None:
        size = path.stat().st_size
        fits = size <= LARGE_BYTES and self.bytes + size <= self.most_bytes
        if path.suffix != ".py" and (
            self.files >= COPIED_FILES or (not fits and not _cloned(path, target))
        ):
            self.link(path, target)
            return
        if fits or path.suffix == ".py":
            shutil.copy2(path, target)
            self.bytes += size
        self.files += 1

    def _folder(self, path: Path, target: Path) -> None:
        if not os.access(path, os.R_OK | os.X_OK):
            self._lack(path)
        elif path in self.open_folders or not self._large(path):
            self.copy(path, target)
        else:
            self._shell(path, target)

    def link(self, path: Path, target: Path) -> None:
        """Make a link to what `path` is in the read-only mount of all files.

        Without such a mount, nothing is made, unless this user may not write there anyway.
        """
        if self._mounts or _is_read_only(path):
            os.symlink(self._in_mount(path) if self._mounts else os.path.realpath(path), target)
            self.place.linked.append(self._name(path))
        else:
            self._lack(path)

    @cached_property
    def _mounts(self) -> bool:
        """Whether this system lets the guard of the ranks mount something read-only."""
        os.makedirs(os.path.join(self.folder, ORIGINALS), exist_ok=True)
        tried = subprocess.run(
            [sys.executable, "-I", GUARD, "mounts"],
            env={**os.environ, COPY: self.folder},
            capture_output=True,
        )
        if tried.returncode:
            os.rmdir(os.path.join(self.folder, ORIGINALS))
        return not tried.returncode

    def _in_mount(self, path: Path) -> str:
        return f"{self.folder}/{ORIGINALS}{os.path.realpath(path)}"

    def _lack(self, path: Path) -> None:
        self.place.left_out.append(self._name(path))

    def _name(self, path: Path) -> str:
        return (
            str(path.relative_to(self.place.original))
            if path.is_relative_to(self.place.original)
            else str(path)
        )

    def _large(self, folder: Path) -> bool:
        """Whether all below this folder is too much for the copy.

        Files that are linked by themselves do not count.
        """
        total = files = 0
        for top, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            for name in names:
                files += 1
                try:
                    size = os.lstat(os.path.join(top, name)).st_size
                except OSError:
                    continue
                total += size if size <= LARGE_BYTES else 0
            if (
                files > FOLDER_FILES
                or files + self.files > COPIED_FILES
                or total + self.bytes > self.most_bytes
            ):
                return True
        return False

    def _shell(self, path: Path, target: Path) -> None:
        """Make a folder with links to what is in it, so that new files stay in the copy.

        A folder of very many entries becomes one link.
        """
        entries = list(os.scandir(path))
        if len(entries) > FOLDER_FILES:
            self.link(path, target)
        elif sum(entry.is_dir() and not entry.is_symlink() for entry in entries) <= LOOKED_THROUGH:
            self.copy(path, target)
        elif self._mounts:
            target.mkdir()
            shell_of(path, target, self._in_mount(path))
            self.place.linked.append(self._name(path))
        else:
            self._lack(path)


def shell_of(path: str | Path, target: str | Path, prefix: str) -> None:
    """Fill the folder `target` with links to the entries of `path`.

    In the mount, `path` has the name `prefix`.
    """
    for entry in os.scandir(path):
        os.symlink(f"{prefix}/{entry.name}", os.path.join(target, entry.name))


def _is_read_only(path: Path) -> bool:
    """Whether this user cannot write to a file, or to anything in a folder."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return True
    return os.path.isfile(path) and not os.access(path, os.W_OK)


def _cloned(path: Path, target: Path) -> bool:
    """Whether the file system could copy a file without copying its blocks."""
    if not sys.platform.startswith("linux"):
        return False
    with open(path, "rb") as source, open(target, "xb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), FICLONE, source.fileno())
        except OSError:
            os.unlink(target)
            return False
    shutil.copystat(path, target)
    return True
