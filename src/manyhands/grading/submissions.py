"""What somebody handed in: a folder whose content may be anything. Nothing in it is followed, run or believed here."""

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from manyhands.grading import notebooks
from manyhands.grading.compare import printable
from manyhands.grading.notebooks import NotGraded

KEPT_BYTES = 50 * 2**20  # of a folder: more is not taken along
MOST_FILES = 2000
STAMPS = ("timestamp.txt", "submission_secret.txt")  # written by nbgrader beside what was handed in
NOTES = "collected.txt"  # written by us: what could not be taken along
NOT_WORK = (".ipynb_checkpoints", "__pycache__", "feedback")
LINK = "{name} is a symbolic link, which is not followed. Hand in the file itself."
EMPTY = "The folder that was handed in holds no notebook. It should hold {wanted}."
NO_FILE = "{name} is not a file. Hand in the notebook itself."
OTHERS = "There is no {wanted}, and no other notebook here is a copy of this lab: {found}."
SEVERAL = "There is no {wanted}, but more than one copy of the lab: {found}. Hand in one, under its own name."
RENAMED = "The notebook was called {name}; it should be {wanted}. It was graded all the same."
UNREADABLE = "Not taken along, because it could not be read: {name}."
TOO_MUCH = "Too much was handed in (more than {files} files or {mb} MB): {name} and what comes after it was not taken along."
NOT_PLAIN = "Not taken along, because it is no plain file: {name}."


@dataclass
class Found:
    """A file in a folder: its name there, what it is ("file", "link", "other", "unreadable"), its size."""

    name: str
    kind: str
    size: int = 0


def files(folder):
    """All files of a folder in order, links not followed, without checkpoints and caches."""
    found = []
    for base, folders, names in os.walk(folder, onerror=lambda error: found.append(_unreadable(folder, error))):
        folders[:] = sorted(name for name in folders if name not in NOT_WORK)
        linked = [name for name in folders if os.path.islink(Path(base) / name)]
        for name in sorted([*names, *linked]):
            path = Path(base) / name
            found.append(_look(path, path.relative_to(folder).as_posix()))
        if len(found) > 2 * MOST_FILES:
            break
    return sorted(found, key=lambda one: one.name)


def _unreadable(folder, error):
    return Found(os.path.relpath(error.filename, folder), "unreadable")


def _look(path, name):
    try:
        status = path.lstat()
    except OSError:
        return Found(name, "unreadable")
    if stat.S_ISLNK(status.st_mode):
        return Found(name, "link")
    if not stat.S_ISREG(status.st_mode):
        return Found(name, "other")
    readable = os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)
    return Found(name, "file" if readable else "unreadable", status.st_size)


def digest(folder):
    """Changes with everything in the folder that can bear on a grade; files beyond what is taken along count by their size."""
    summed, total = hashlib.sha256(), 0
    if os.path.islink(folder):
        return hashlib.sha256(b"link").hexdigest()
    for one in files(folder):
        if one.name in (*STAMPS, NOTES):
            continue
        total += one.size
        summed.update(f"{one.name}\0{one.kind}\0{one.size}\0".encode("utf-8", "surrogateescape"))
        if one.kind == "file" and total <= KEPT_BYTES:
            with suppress(OSError), _opened(Path(folder) / one.name) as file:
                for block in iter(lambda: file.read(2**20), b""):
                    summed.update(block)
    return summed.hexdigest()


def _opened(path):
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def copy(folder, place, first, links=False):
    """Copy the plain files of a folder, that with the name `first` before the others, at most so many and so large; notes
    about what was left out. With `links`, a link stays a link."""
    notes, total, count = [], 0, 0
    for one in sorted(files(folder), key=lambda one: one.name != first):
        total, count = total + one.size, count + 1
        if total > KEPT_BYTES or count > MOST_FILES:
            return [*notes, TOO_MUCH.format(files=MOST_FILES, mb=KEPT_BYTES // 2**20, name=shown(one.name))]
        if one.kind == "unreadable":
            notes.append(UNREADABLE.format(name=shown(one.name)))
        elif one.kind == "link" and links:
            (Path(place) / one.name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / one.name).symlink_to(os.readlink(Path(folder) / one.name))
        elif one.kind != "file":
            notes.append(NOT_PLAIN.format(name=shown(one.name)))
        else:
            target = Path(place) / one.name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with _opened(Path(folder) / one.name) as source:
                    target.write_bytes(source.read(one.size))
            except OSError:
                notes.append(UNREADABLE.format(name=shown(one.name)))
    return notes


def shown(name):
    """A name that somebody else chose, fit for a message."""
    return printable(str(name).encode("utf-8", "replace").decode()).replace("\n", "?")[:100]


def notebook_in(folder, solution):
    """(path, note) of the notebook to be graded in a folder; `NotGraded` says why there is none."""
    wanted = Path(solution.path).name
    if os.path.islink(folder):
        raise NotGraded(LINK.format(name="The folder"))
    there = files(folder)
    own = next((one for one in there if one.name == wanted), None)
    if own is not None and own.kind == "link":
        raise NotGraded(LINK.format(name=wanted))
    if own is not None and own.kind == "unreadable":
        raise NotGraded(UNREADABLE.format(name=wanted))
    if own is not None and own.kind == "file":
        return Path(folder) / wanted, ""
    if own is not None or os.path.isdir(Path(folder) / wanted):
        raise NotGraded(NO_FILE.format(name=wanted))
    return _renamed(folder, there, wanted, solution)


def _renamed(folder, there, wanted, solution):
    others = [one for one in there if one.name.endswith(".ipynb")][:20]
    if not others:
        unreadable = [UNREADABLE.format(name=shown(one.name)) for one in there if one.kind == "unreadable"]
        raise NotGraded(" ".join([EMPTY.format(wanted=wanted), *unreadable]))
    copies = [one for one in others if one.kind == "file" and solution.is_copy(Path(folder) / one.name)]
    names = ", ".join(shown(one.name) for one in (copies or others))
    if not copies:
        raise NotGraded(OTHERS.format(wanted=wanted, found=names))
    if len(copies) > 1:
        raise NotGraded(SEVERAL.format(wanted=wanted, found=names))
    return Path(folder) / copies[0].name, RENAMED.format(name=shown(copies[0].name), wanted=wanted)


class Solution:
    """The solution that submissions of a unit are compared with."""

    def __init__(self, path):
        self.path = Path(path)
        self.notebook = notebooks.read(path)
        self.marks = {notebooks.grade_id(cell) for cell in self.notebook.cells} - {None}

    def is_copy(self, path):
        """Whether a notebook carries any of the lab's marks."""
        try:
            return any(notebooks.grade_id(cell) in self.marks for cell in notebooks.read(path).cells)
        except NotGraded:
            return False

    @property
    def digest(self):
        """Changes with the cells and with the scripts beside them."""
        summed = hashlib.sha256()
        for cell in self.notebook.cells:
            mark = cell.metadata.get("nbgrader") or {}
            summed.update(repr((cell.cell_type, cell.source, mark.get("grade_id"), mark.get("points"))).encode())
        for one in files(self.path.parent):
            if one.kind == "file" and not one.name.endswith(".ipynb"):
                summed.update(one.name.encode() + b"\0" + (self.path.parent / one.name).read_bytes())
        return summed.hexdigest()

    @property
    def clustered(self):
        """Whether the lab starts a cluster."""
        return any("Cluster(" in cell.source for cell in self.notebook.cells if cell.cell_type == "code")


def handed_in_at(folder):
    """When this was handed in, as nbgrader has noted it beside it: a time in UTC without a zone, or None."""
    from nbgrader.utils import parse_utc

    try:
        path = Path(folder) / STAMPS[0]
        return None if path.is_symlink() else parse_utc(path.read_text(encoding="utf-8")[:100].strip())
    except (OSError, ValueError, OverflowError):
        return None


def notes_of(folder):
    """What was noted when this was collected."""
    try:
        with _opened(Path(folder) / NOTES) as file:
            return file.read(4000).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def now():
    return datetime.now(UTC).isoformat(timespec="seconds")
