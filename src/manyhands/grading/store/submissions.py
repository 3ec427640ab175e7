"""What somebody handed in: a folder whose content may be anything.

Nothing in it is followed, run or believed here.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dateutil import parser, tz

from manyhands.grading import notebooks
from manyhands.grading.compare import printable
from manyhands.grading.notebooks import LINK, NotGradedError
from manyhands.grading.store.beneath import Below
from manyhands.grading.submission_limits import FOLDER_BYTES, MOST_FILES

if TYPE_CHECKING:
    from collections.abc import Container

    from nbformat import NotebookNode

    from manyhands.grading.store.beneath import FolderEntry

STAMPS = ("timestamp.txt", "submission_secret.txt")  # written by nbgrader beside what was handed in
NOTES = "collected.txt"  # written by us: what could not be taken along
NOT_WORK = (".ipynb_checkpoints", "__pycache__", "feedback")
EMPTY = "The folder that was handed in does not contain a notebook. It should contain {wanted}."
OTHERS = "{wanted} is missing, and no other notebook here is a copy of this lab: {found}."
SEVERAL = (
    "{wanted} is missing, and there is more than one copy of the lab: {found}. Hand in one copy "
    "under its original name."
)
RENAMED = "The notebook was called {name} instead of {wanted}. It was graded nevertheless."
UNREADABLE = "Left out because it could not be read: {name}."
TOO_MUCH = (
    "Too much was handed in (more than {files} files or {mb} MB): {name} and everything after it "
    "was left out."
)
LEFT = {  # by what it is
    "other": "Left out because it is not a plain file: {name}.",
    "unreadable": UNREADABLE,
    "deep": (
        "Left out because its folder is too deep, its path is too long, or it is too large: {name}."
    ),
}
OUR_NAME = "Left out because the grader uses this name for its own notes: {name}."


def digest(folder: str | Path) -> str:
    """Changes with everything in the folder that can bear on a grade.

    Files beyond what is taken along count by their size.
    """
    summed, total = hashlib.sha256(), 0
    try:
        there = Below(folder)
    except OSError:
        return hashlib.sha256(b"link").hexdigest()
    with there:
        for entry in there.files(NOT_WORK.__contains__):
            if entry.name in (*STAMPS, NOTES):
                continue
            total += entry.size
            summed.update(
                f"{entry.name}\0{entry.kind}\0{entry.size}\0".encode("utf-8", "surrogateescape")
            )
            if entry.kind == "file" and total <= FOLDER_BYTES:
                with suppress(OSError):
                    summed.update(there.read(entry.name, FOLDER_BYTES))
    return summed.hexdigest()


def copy(
    there: Below, place: str | Path, first: str, links: bool = False, left_out: Container[str] = ()
) -> list[str]:
    """Copy the plain files of an open folder (a `Below`), and return notes about what was left out.

    The file with the name `first` comes before the others, and at most so many and so large ones
    are copied. With `links`, a link stays a link. `left_out` are names that nothing may have here.
    """
    notes: list[str] = []
    bytes_left = FOLDER_BYTES
    entries = {
        entry.name: entry
        for entry in [there.look(first), *there.files(NOT_WORK.__contains__)]
        if entry and entry.kind != "folder"
    }
    for count, entry in enumerate(entries.values(), 1):
        if entry.name.split("/")[0] in left_out:
            notes += [] if entry.name == STAMPS[0] else [OUR_NAME.format(name=shown(entry.name))]
            continue
        kind, content = _taken(there, entry, bytes_left, links)
        bytes_left -= len(content)
        if bytes_left < 0 or count > MOST_FILES:
            return [
                *notes,
                TOO_MUCH.format(files=MOST_FILES, mb=FOLDER_BYTES // 2**20, name=shown(entry.name)),
            ]
        if kind in LEFT:
            notes.append(LEFT[kind].format(name=shown(entry.name)))
            continue
        target = Path(place) / entry.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(content) if isinstance(content, str) else _write(target, content)
    return notes


def _taken(
    there: Below, entry: FolderEntry, bytes_left: int, links: bool
) -> tuple[str, bytes | str]:
    """(what it is, what is written in its place) of something that was found."""
    try:
        if entry.kind == "file":
            return "file", there.read(entry.name, bytes_left)
        if entry.kind == "link":
            return ("link", there.link(entry.name)) if links else ("other", b"")
    except OSError:
        return "unreadable", b""
    return entry.kind, b""


def _write(target: Path, content: bytes) -> None:
    with open(target, "xb") as file:
        file.write(content)


def shown(name: object) -> str:
    """A name that somebody else chose, fit for a message."""
    return printable(str(name).encode("utf-8", "replace").decode()).replace("\n", "?")[:100]


def notebook_in(folder: str | Path, solution: Solution) -> tuple[str, NotebookNode, str]:
    """(name, notebook, note): what is to be graded in a folder, its path there first.

    `NotGradedError` says why there is nothing.
    """
    wanted = Path(solution.path).name
    try:
        there = Below(folder)
    except OSError:
        raise NotGradedError(
            (LINK if os.path.islink(folder) else UNREADABLE).format(name="The folder")
        ) from None
    with there:
        if there.look(wanted):
            return wanted, notebooks.read_in(there, wanted), ""
        return _renamed(there, wanted, solution)


def _renamed(there: Below, wanted: str, solution: Solution) -> tuple[str, NotebookNode, str]:
    entries = there.files(NOT_WORK.__contains__)
    others = [entry.name for entry in entries if entry.name.endswith(".ipynb")][:20]
    if not others:
        unreadable = [
            UNREADABLE.format(name=shown(entry.name))
            for entry in entries
            if entry.kind == "unreadable"
        ]
        raise NotGradedError(" ".join([EMPTY.format(wanted=wanted), *unreadable]))
    copies = {}
    for name in others:
        with suppress(NotGradedError):
            notebook = notebooks.read_in(there, name)
            if solution.is_copy(notebook):
                copies[name] = notebook
    names = ", ".join(shown(name) for name in (copies or others))
    if not copies:
        raise NotGradedError(OTHERS.format(wanted=wanted, found=names))
    if len(copies) > 1:
        raise NotGradedError(SEVERAL.format(wanted=wanted, found=names))
    ((name, notebook),) = copies.items()
    return name, notebook, RENAMED.format(name=shown(name), wanted=wanted)


class Solution:
    """The solution that submissions of a unit are compared with."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.notebook = notebooks.read(path)
        self.marks = {notebooks.grade_id(cell) for cell in self.notebook.cells} - {None}

    def is_copy(self, notebook: NotebookNode) -> bool:
        """Whether a notebook carries any of the lab's marks."""
        return any(notebooks.grade_id(cell) in self.marks for cell in notebook.cells)

    @property
    def digest(self) -> str:
        """Changes with the cells and with the scripts beside them."""
        summed = hashlib.sha256()
        for cell in self.notebook.cells:
            mark = cell.metadata.get("nbgrader") or {}
            summed.update(
                repr(
                    (cell.cell_type, cell.source, mark.get("grade_id"), mark.get("points"))
                ).encode()
            )
        with Below(self.path.parent.resolve()) as there:
            for entry in there.files(NOT_WORK.__contains__):
                if entry.kind == "file" and not entry.name.endswith(".ipynb"):
                    summed.update(entry.name.encode() + b"\0" + there.read(entry.name, entry.size))
        return summed.hexdigest()

    @property
    def clustered(self) -> bool:
        """Whether the lab starts a cluster."""
        return any(
            "Cluster(" in cell.source for cell in self.notebook.cells if cell.cell_type == "code"
        )


def stamps(folder: str | Path) -> dict[str, bytes]:
    """{name: content} of what nbgrader has noted beside the work."""
    return {name: content for name in STAMPS if (content := _beginning(folder, name)) is not None}


def handed_in_at(folder: str | Path) -> datetime | None:
    """When this was handed in, as nbgrader has noted it beside it.

    It is a time in UTC without a zone, or None.
    """
    try:
        return _utc((_beginning(folder, STAMPS[0]) or b"").decode("utf-8")[:100].strip())
    except Exception:  # noqa: BLE001 - whatever the parser makes of what is no time
        return None


def _utc(text: str) -> datetime:
    """What nbgrader's own `parse_utc` makes of a stamp.

    nbgrader takes 40 MiB, and the process that starts all graders asks this.
    """
    *before, named = text.split(" ")
    if len(before) == 2:
        zone = int(named) if named.lstrip("+-").isdecimal() else tz.gettz(named)
        time = parser.parse(" ".join([*before, "TZ"]), tzinfos={"TZ": zone})
    else:
        time = parser.parse(text)
    return time if time.tzinfo is None else (time - time.utcoffset()).replace(tzinfo=None)


def notes_of(folder: str | Path) -> list[str]:
    """What was noted when this was collected."""
    return (_beginning(folder, NOTES) or b"").decode("utf-8", "replace").splitlines()


def _beginning(folder: str | Path, name: str) -> bytes | None:
    """The first 4,000 bytes of a plain file in a folder, or None."""
    try:
        with Below(folder) as there:
            return there.read(name, 3999)
    except OSError:
        return None


def now() -> str:
    """The time now in UTC, to the second, as text that a file can hold."""
    return datetime.now(UTC).isoformat(timespec="seconds")
