"""What became of a lab's cells in a notebook that was handed in.

Cells may have been turned into text, deleted, copied, split or merged, have lost their marks, or
begin with a different magic. What can cost points is reported.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from manyhands.grading.cell_marks import answer_cells, checks_of, grade_id
from manyhands.grading.compare import in_a_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbformat import NotebookNode

CODE_AGAIN = (
    "Click on it in JupyterLab, and press Esc and then Y to make it a code cell again. Then save "
    "the notebook."
)
TEXT = "The answer cell `{name}` is a text cell now ({kind}), so it was not run. " + CODE_AGAIN
EMPTY = (
    "The answer cell `{name}` is empty. To begin it again, copy that cell's text from the lab in "
    "labs/."
)
MISSING = (
    "The answer cell `{name}` is not in this notebook: it was deleted or merged with a different "
    "cell, or its mark was lost. "
)
COPY = "Copy that cell from the lab in labs/ and write your answer there."
DEFINED = "Cell {number} defines `{defined}`, and it was run in its place."
DOUBLED = (
    "This notebook contains the answer cell `{name}` {times} times, because it was copied or split "
    "in two. All of them were run in their order, so the last one counts."
)
SPLIT = (
    "The cell below the answer cell `{name}` begins with an indented line, so it looks like the "
    "second half of the answer, which cannot run alone. Select both cells in JupyterLab, press "
    "Esc, and merge them with Shift+M."
)
IN_CHECK = (
    "The check cell `{name}` contains your own code, which was not run, because the grade runs the "
    "lab's own check cell in its place. Move your code into the answer cell."
)
OTHER_LINE = (
    "In the lab the answer cell `{name}` begins with `{wanted}`, and in this notebook with {got}. "
    "Put the lab's line back if points are missing."
)
ADDED_LINE = (
    "The answer cell `{name}` begins with `{got}`, a line that the lab does not have. Remove it if "
    "points are missing."
)
OTHER_TEXT = (
    "Cell {number} is code in the lab and text in this notebook, so it was not run. " + CODE_AGAIN
)
DEFINITION = re.compile(r"^(?:async +)?(?:def|class) +(\w+)", re.MULTILINE)


def notes_of(submission: NotebookNode, solution: NotebookNode) -> list[str]:
    """The sentences about a submission's cells.

    Those about the lab's answers come first, in their order.
    """
    marks = [grade_id(cell) for cell in submission.cells]
    defined = [defined_in(cell) for cell in submission.cells]
    notes = []
    for name, wanted in answer_cells(solution).items():
        notes += _notes_of_answer(name, wanted, submission.cells, marks, defined)
    for name, check in checks_of(solution).items():
        own = [
            names - defined_in(check)
            for mark, names in zip(marks, defined, strict=True)
            if mark == name
        ]
        notes += [IN_CHECK.format(name=name)] if any(own) else []
    return notes + _other_text_cells(submission, solution)


def _notes_of_answer(
    name: str,
    wanted: NotebookNode,
    cells: Sequence[NotebookNode],
    marks: Sequence[str | None],
    defined: Sequence[set[str]],
) -> list[str]:
    """The notes on one answer; `marks` and `defined` are what is known of each of the `cells`."""
    here = [place for place, mark in enumerate(marks) if mark == name]
    code = [place for place in here if cells[place].cell_type == "code"]
    elsewhere = [
        (place + 1, same)
        for place, names in enumerate(defined)
        if marks[place] != name
        for same in sorted(names & defined_in(wanted))
    ]
    if not here:
        rest = (
            DEFINED.format(number=elsewhere[0][0], defined=elsewhere[0][1]) if elsewhere else COPY
        )
        return [MISSING.format(name=name) + rest]
    if not code:
        kind = in_a_line(str(cells[here[0]].cell_type), 20)
        return [] if elsewhere else [TEXT.format(name=name, kind=kind)]
    notes = [DOUBLED.format(name=name, times=len(here))] if len(here) > 1 else []
    if not any(cells[place].source.strip() for place in code):
        return [*notes, EMPTY.format(name=name)]
    below = [cells[place + 1] for place in code if place + 1 < len(cells)]
    if any(cell.cell_type == "code" and _first_line(cell.source)[:1].isspace() for cell in below):
        notes.append(SPLIT.format(name=name))
    return notes + _note_of_magic(name, _magic(wanted), _magic(cells[code[0]]))


def _note_of_magic(name: str, right: str, got: str) -> list[str]:
    """A note where the magic of the whole cell, `%%px --setup` for example, is not the lab's."""
    if right.split() == got.split():
        return []
    shown = in_a_line(got, 60)
    if not right:
        return [ADDED_LINE.format(name=name, got=shown)]
    return [OTHER_LINE.format(name=name, wanted=right, got=f"`{shown}`" if got else "no such line")]


def _magic(cell: NotebookNode) -> str:
    line = _first_line(cell.source).strip()
    return line if line.startswith("%%") else ""


def _first_line(source: str) -> str:
    """The first line that is not empty."""
    return next((line for line in source.split("\n") if line.strip()), "")


def defined_in(cell: NotebookNode) -> set[str]:
    """The names of the functions and classes that a code cell defines at its top level.

    What was handed in is not parsed, because a hostile text can end the process that parses it.
    """
    return set(DEFINITION.findall(cell.source)) if cell.cell_type == "code" else set()


def _other_text_cells(submission: NotebookNode, solution: NotebookNode) -> list[str]:
    """Notes on cells without a mark that are code in the lab and text here.

    One that sets up a cluster is an example.
    """
    here = {cell.source.strip() for cell in submission.cells if cell.cell_type == "code"}
    lab = {
        cell.source.strip()
        for cell in solution.cells
        if cell.cell_type == "code" and not grade_id(cell)
    } - here
    return [
        OTHER_TEXT.format(number=number)
        for number, cell in enumerate(submission.cells, 1)
        if cell.cell_type != "code" and cell.source.strip() in lab - {""}
    ]


def marks_found_again(submission: NotebookNode, solution: NotebookNode) -> list[str | None]:
    """The grade_id of each of the submission's cells.

    A mark that was lost is found again by the text of a check cell, or by what an answer cell
    defines.
    """
    lab = {
        name: cell
        for cell in solution.cells
        if cell.cell_type == "code" and (name := grade_id(cell))
    }
    marks = [grade_id(cell) for cell in submission.cells]
    defined = [defined_in(cell) for cell in submission.cells]
    for name in [name for name in lab if name not in marks]:
        text, names = lab[name].source.strip(), defined_in(lab[name])
        fitting = (
            place
            for place, cell in enumerate(submission.cells)
            if marks[place] not in lab
            and cell.cell_type == "code"
            and (cell.source.strip() == text or defined[place] & names)
        )
        place = next(fitting, None)
        if place is not None:
            marks[place] = name
    return marks
