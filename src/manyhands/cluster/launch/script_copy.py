"""A copy of the repository of a script, so that running the script changes nothing.

The copy is bounded. Large files, and the entries of large folders, are links to the originals. A linked file that the
script opens for writing becomes a copy first (`as_main`); what it writes into a linked folder, it writes into the
original.
"""

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LEFT_OUT = {"__pycache__", ".git", ".venv", "venv", "node_modules", ".ipynb_checkpoints", ".tox", ".mypy_cache"}
COPIED_BYTES, COPIED_FILES = 500 * 2**20, 20_000  # of a whole copy
LARGE_BYTES = 50 * 2**20  # of a file: from here on it is linked
FOLDER_BYTES, FOLDER_FILES = 200 * 2**20, 5_000  # of a folder, with all below it
LOOKED_THROUGH = 20  # a large folder with so many folders in it is copied entry by entry
COPY = "MANYHANDS_COPY"  # the environment variable that names the folder of the copy to the ranks
PROJECT = ("pyproject.toml", "setup.py")
PREFIX = "manyhands-copy-"  # of a copy's folder


@dataclass
class Place:
    """A script in its copy. `left_out` and `linked` are paths in the copy that it lacks, or that are links."""

    script: Path
    root: Path  # of the copy
    original: Path  # the folder that was copied
    start: str = "."  # the folder in which the script is started, from `original` on
    left_out: list = field(default_factory=list)
    linked: list = field(default_factory=list)
    paths: list = field(default_factory=list)  # [(a path of the copy, what a reader knows in its place)]

    def shown(self, text):
        """The same text without the folders of the copy."""
        for path, known in self.paths:
            text = text.replace(f"{path}/", known)
        return text

    def facts(self):
        """Where the script ran, as a sentence for a script that has failed."""
        started = "" if self.start == "." else f", in its folder {self.start}"
        lacks = "".join(f" {what}: {some(paths)}." for what, paths in (
            ("Not in the copy", self.left_out), ("Links to the originals", self.linked)) if paths)
        return (f"It ran in a copy of the folder {self.original.name or self.original}{started}. What is outside of "
                f"that folder is not in the copy, nor are .git, .venv and __pycache__.{lacks}")


def some(paths, count=4):
    """The first of several paths."""
    from manyhands.command_line import printable

    more = len(paths) - count
    return ", ".join(map(printable, paths[:count])) + (f" and {more} more" if more > 0 else "")


def top_level(script, here):
    """The folder to be copied for `script`, started in the folder `here`: the top level of its git repository, or the
    nearest folder with a `pyproject.toml` or `setup.py`; `here`, if the script is below it and that is more."""
    parents, shared = script.parents, _shared_folders()
    found = next((one for one in parents if (one / ".git").exists()), None) or next(
        (one for one in parents if any((one / name).is_file() for name in PROJECT)), script.parent)
    if found in shared:
        found = script.parent
    whole = here in parents and here not in shared and here in found.parents
    return here if whole else found


def _shared_folders():
    """Folders that hold more than one project, so that they are not copied as a whole."""
    home = Path.home().resolve()
    return home, Path(tempfile.gettempdir()).resolve(), Path(home.anchor)


@contextmanager
def copied(script):
    """A `Place` with a copy of `script`, which is removed afterwards. Inside, the current folder is the copy of the
    current folder."""
    script, here = Path(script).resolve(), Path.cwd()
    root = top_level(script, here.resolve())
    folder = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX))  # as the script sees its current folder
    before = {name: os.environ.get(name) for name in (COPY, "PYTHONPATH")}
    try:
        place = Place(Path(), Path(folder, root.name or "script"), root)
        place.script = place.root / script.relative_to(root)
        start = _copy_of(here.resolve(), place, folder, {script.parent, *script.parents})
        place.start = os.path.relpath(start, place.root) if start.is_relative_to(place.root) else str(here)
        place.paths = [(place.script.parent, ""), (place.root, ""), (folder, "")]
        os.environ[COPY] = folder
        if before["PYTHONPATH"]:
            os.environ["PYTHONPATH"] = os.pathsep.join(
                str(place.root / Path(one).resolve().relative_to(root))
                if one and Path(one).resolve().is_relative_to(root) else one
                for one in before["PYTHONPATH"].split(os.pathsep))
        os.chdir(start)
        yield place
    finally:
        os.chdir(here)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder, ignore_errors=True)


def _copy_of(here, place, folder, open_folders):
    """Make the copy, and a second one of the folder `here`, if that is elsewhere; returns where `here` is copied to."""
    maker = _Copier(place, {*open_folders, here, *here.parents})
    maker.copy(place.original, place.root)
    if here.is_relative_to(place.original):
        return place.root / here.relative_to(place.original)
    start = Path(folder, "started-in", here.name or "root")
    if here in _shared_folders() or here in place.original.parents:
        start.mkdir(parents=True)
        for one in os.scandir(here):  # too much, perhaps, to be looked through
            maker.link(Path(one.path), start / one.name)
    else:
        maker.copy(here, start)
    return start


class _Copier:
    """Copies folders, within the bounds of this module."""

    def __init__(self, place, open_folders):
        self.place, self.open_folders = place, open_folders
        self.bytes = self.files = 0

    def copy(self, source, target):
        target.mkdir(parents=True)
        for entry in sorted(os.scandir(source), key=lambda one: one.name):
            path = Path(entry.path)
            try:
                self._entry(entry, path, target / entry.name)
            except OSError:  # it may not be read, or is gone by now
                self._lack(path)

    def _entry(self, entry, path, target):
        if entry.name in LEFT_OUT and path not in self.open_folders or entry.name.startswith(PREFIX):
            return
        if entry.is_symlink():
            self._symlink(path, target)
        elif entry.is_dir():
            if not os.access(path, os.R_OK | os.X_OK):
                self._lack(path)
            elif path in self.open_folders or not self._large(path):
                self.copy(path, target)
            else:
                self._shell(path, target)
        elif entry.is_file():
            size = entry.stat().st_size
            if size > LARGE_BYTES or self.bytes + size > COPIED_BYTES or self.files >= COPIED_FILES:
                self.link(path, target)
            else:
                shutil.copy2(path, target)
                self.bytes, self.files = self.bytes + size, self.files + 1
        else:
            self._lack(path)

    def _symlink(self, path, target):
        """A link within the folder stays as it is; any other leads to the original."""
        aim = Path(os.path.realpath(path))  # of a ring of links, too, where `resolve` may raise
        inside = aim.is_relative_to(self.place.original) and not os.path.isabs(os.readlink(path))
        os.symlink(os.readlink(path) if inside else aim, target)
        if not inside:
            self.place.linked.append(self._name(path))

    def link(self, path, target):
        os.symlink(path, target)
        self.place.linked.append(self._name(path))

    def _lack(self, path):
        self.place.left_out.append(self._name(path))

    def _name(self, path):
        return str(path.relative_to(self.place.original)) if path.is_relative_to(self.place.original) else str(path)

    def _large(self, folder):
        """Whether all below this folder is too much for the copy, files apart that are linked by themselves."""
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
            if files > FOLDER_FILES or total > FOLDER_BYTES or (
                    files + self.files > COPIED_FILES or total + self.bytes > COPIED_BYTES):
                return True
        return False

    def _shell(self, path, target):
        """A folder of its own with links to what is in it, so that new files stay in the copy; one link for a folder of
        very many entries."""
        entries = list(os.scandir(path))
        if len(entries) > FOLDER_FILES:
            self.link(path, target)
        elif sum(one.is_dir() and not one.is_symlink() for one in entries) <= LOOKED_THROUGH:
            self.copy(path, target)
        else:
            target.mkdir()
            for one in entries:
                os.symlink(one.path, target / one.name)
            self.place.linked.append(self._name(path))
