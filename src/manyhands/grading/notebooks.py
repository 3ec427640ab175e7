"""Reading what was handed in, and putting the pristine check cells back."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import reader

from manyhands.grading import altered_cells
from manyhands.grading.cell_marks import cells_of, checks_of, grade_id, is_check, tags  # noqa: F401
from manyhands.grading.compare import in_a_line
from manyhands.grading.store.beneath import Below
from manyhands.grading.submission_limits import MOST_CELLS, NOTEBOOK_BYTES, NOTEBOOK_PIECES
from manyhands.isolation.json_weight import count_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbformat import NotebookNode

# the pieces are 250 MB at most when they are read
LINK = "{name} is a symbolic link, which is not followed. Hand in the file itself."
NO_FILE = "{name} is not a file. Hand in the notebook itself."
MISSING = "There is no file {name} at {folder}."
# of a pair that JSON may write for a letter beyond the first 65,536
HALF = re.compile(r"\\u[dD][89a-fA-F]")


class NotGradedError(Exception):
    """The submission cannot be graded; the message says why and what to do."""


def read(path: str | Path) -> NotebookNode:
    """The notebook in this file; `NotGradedError` if there is none."""
    path = Path(path)
    try:
        folder = Below(path.parent.resolve())
    except (OSError, RuntimeError):  # a loop of links
        raise NotGradedError(
            MISSING.format(name=in_a_line(path.name, 100), folder=path.parent)
        ) from None
    with folder:
        if folder.look(path.name) is None:
            raise NotGradedError(MISSING.format(name=in_a_line(path.name, 100), folder=path.parent))
        return read_in(folder, path.name)


def read_in(folder: Below, name: str) -> NotebookNode:
    """The notebook at a path in an open folder (a `Below`), which may be somebody else's.

    Raises `NotGradedError` if there is none.
    """
    shown = in_a_line(Path(name).name, 100)
    data = _data(folder, name, shown)
    if count_pieces(data, NOTEBOOK_PIECES) == NOTEBOOK_PIECES:
        raise NotGradedError(
            f"{shown} holds too many values to be read. Clear its outputs and save it again."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about cell ids: they do not matter here
            notebook = nbformat.convert(
                _bare(reader.reads(_whole_letters(data.decode("utf-8-sig")))), 4
            )
        cells = [(cell.cell_type, cell.source, tags(cell)) for cell in notebook.cells]
        notebook.metadata.get("kernelspec")
    except Exception as error:  # noqa: BLE001 - whatever is wrong in somebody else's file
        reason = in_a_line(str(error).split("\n")[0], 200)
        raise NotGradedError(
            f"{shown} is not a notebook that can be read ({type(error).__name__}: {reason}). "
            "Open it in JupyterLab and save it again, or start from a new copy of the lab."
        ) from None
    if not all(isinstance(source, str) for _, source, _ in cells):
        raise NotGradedError(
            f"{shown} has a cell whose content is not text. Start from a new copy of the lab."
        )
    for cell in notebook.cells:
        cell.source = cell.source.replace("\r\n", "\n").replace("\r", "\n")
    return notebook


def _bare(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook of any format without outputs and odd tags.

    nbformat would only note that they are wrong, but takes hours and all memory for it: for the
    same reason this does not go through its `reads`, which validates.
    """
    sheets = [notebook, *notebook.get("worksheets", [])]
    cells = [cell for sheet in sheets for cell in sheet.get("cells", [])]
    if len(cells) > MOST_CELLS:
        raise ValueError(f"it has more than {MOST_CELLS} cells")
    for cell in cells:
        if "outputs" in cell:
            cell["outputs"] = []
        metadata = cell.get("metadata")
        if isinstance(metadata, dict) and "tags" in metadata:
            tags = metadata["tags"] if isinstance(metadata["tags"], list) else []
            metadata["tags"] = sorted({tag for tag in tags if isinstance(tag, str)})
    return notebook


def _data(folder: Below, name: str, shown: str) -> bytes:
    entry = folder.look(name)
    if entry and entry.kind == "link":
        raise NotGradedError(LINK.format(name=shown))
    if entry and entry.kind != "file":
        raise NotGradedError(NO_FILE.format(name=shown))
    try:
        data = folder.read(name, NOTEBOOK_BYTES)
    except OSError as error:
        raise NotGradedError(
            f"It could not be read: {shown} ({error.strerror or error}). Hand it in again."
        ) from None
    if len(data) > NOTEBOOK_BYTES:
        raise NotGradedError(
            f"{shown} is larger than {NOTEBOOK_BYTES // 2**20} MB. Clear its outputs and save it "
            "again."
        )
    return data


def _whole_letters(text: str) -> str:
    r"""JSON without halves of letters, which Python reads and nothing can write.

    An example is "\ud800" alone.
    """
    if not HALF.search(text):
        return text
    return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()


@dataclass
class Step:
    """One cell to run: a check cell's `check` is its grade_id, else it is None."""

    source: str
    check: str | None = None
    where: str = ""
    may_raise: bool = False
    sets_up: bool = False  # a cell of the lab's that starts a cluster


@dataclass
class Plan:
    """The cells to run, in order.

    The notes are what the reader should know about how they were put together.
    """

    steps: list[Step]
    notes: list[str] = field(default_factory=list)


def plan_of_solution(solution: NotebookNode) -> Plan:
    """The solution's own code cells."""
    return Plan(
        _to_the_last_check(
            [
                _step(cell, number, grade_id(cell) if is_check(cell) else None)
                for number, cell in enumerate(solution.cells, 1)
                if cell.cell_type == "code"
            ]
        )
    )


def plan(submission: NotebookNode, solution: NotebookNode) -> Plan:
    """The submission's cells, with every check cell the solution's.

    The checks are in its order, none missing, none doubled.
    """
    checks = checks_of(solution)
    known = {grade_id(cell) for cell in solution.cells} - {None}
    marks_present = {grade_id(cell) for cell in submission.cells} & known
    if not marks_present:
        raise NotGradedError(
            "This notebook is not a copy of the lab: none of its cells carries the lab's marks, "
            "which some editors remove. Start from a new copy of the lab and paste your answers "
            "into it."
        )
    marks = altered_cells.marks_found_again(submission, solution)
    excused = {grade_id(cell) for cell in solution.cells if "raises-exception" in tags(cell)}
    steps: list[tuple[float, Step]] = [
        (
            position,
            _step(
                cell, position + 1, excused=grade_id(cell) not in known or grade_id(cell) in excused
            ),
        )
        for position, cell in enumerate(submission.cells)
        if cell.cell_type == "code" and marks[position] not in checks
    ]
    steps += [
        (place, _step(checks[name], None, name)) for name, place in _places(marks, solution, checks)
    ]
    steps.sort(key=lambda pair: pair[0])
    notes = altered_cells.notes_of(submission, solution) + _other_kernel(submission)
    return Plan(_to_the_last_check([step for _, step in steps]), notes)


def _other_kernel(submission: NotebookNode) -> list[str]:
    """A note where the notebook was saved with a kernel that is not Python's.

    What runs is the course's Python anyway.
    """
    spec = submission.metadata.get("kernelspec")
    language = spec.get("language") if isinstance(spec, dict) else None
    if not isinstance(language, str) or language.lower() == "python":
        return []
    return [
        f"The notebook asks for a kernel of a different language ({language[:40]!r}). It was run "
        "with the course's Python. Choose the kernel Python 3 and run it again."
    ]


def _to_the_last_check(steps: list[Step]) -> list[Step]:
    """Leave out what follows the last check, such as the launch of a script.

    It bears on no point and is not run.
    """
    return steps[
        : 1 + max((number for number, step in enumerate(steps) if step.check), default=len(steps))
    ]


def _places(
    marks: Iterable[str | None], solution: NotebookNode, checks: dict[str, NotebookNode]
) -> list[tuple[str, float]]:
    """Where each check cell goes, in the solution's order.

    It goes where the learner has it, but never before an earlier check, nor before a cell of the
    lab that it follows in the solution. A half stands for "just after".
    """
    positions: dict[str | None, int] = {}
    for position, mark in enumerate(marks):
        positions.setdefault(mark, position)
    places: list[tuple[str, float]] = []
    reached = -0.5
    for cell in solution.cells:
        name = grade_id(cell)
        if name in checks:
            reached = max(reached, positions.get(name, reached))
            places.append((name, reached))
        elif name in positions:
            reached = max(reached, positions[name] + 0.5)
    return places


def _step(
    cell: NotebookNode, number: int | None, check: str | None = None, excused: bool = True
) -> Step:
    """The step of a cell.

    Where it is not `excused`, its tag raises-exception does not count: a learner has set it.
    """
    where = check or (
        f"cell {number}" + (f" ({in_a_line(mark, 100)})" if (mark := grade_id(cell)) else "")
    )
    may_raise = excused and "raises-exception" in tags(cell)
    return Step(
        cell.source, check, where, may_raise, "setup" in tags(cell) and "Cluster(" in cell.source
    )


def points_of(cell: NotebookNode) -> float:
    """The points that a check cell is worth."""
    return (cell.metadata.get("nbgrader") or {}).get("points") or 0
