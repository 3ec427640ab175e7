"""The notebook that formgrader shows for a submission.

It has the learner's answers as text, and what each criterion said. It is shown in the instructor's
browser, so nothing in it is what a learner could make a page of: outputs and attachments are left
out, and text cells that are not the lab's own stand in it as they were typed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from manyhands.grading import grade_report, notebooks
from manyhands.grading.notebooks import NotGradedError
from manyhands.grading.store import submissions
from manyhands.shared.atomic import replace_folder

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from nbformat import NotebookNode

    from manyhands.grading.grade_report import GradeData
    from manyhands.grading.nbgrader.class_settings import Classroom

NO_NOTEBOOK = "# Not graded\n\nThe verdict is shown below. What was handed in is in `{folder}`."


def write(classroom: Classroom, unit: str, student: str, grade: GradeData) -> None:
    """Write nbgrader's folder `autograded/<student>/<unit>` anew, in one step."""
    solution = submissions.Solution(classroom.solution(unit))
    submitted = classroom.step_folder("submitted", student, unit)
    target = classroom.step_folder("autograded", student, unit)
    with replace_folder(target) as folder:
        nbformat.write(notebook(submitted, solution, grade), folder / f"{unit}.ipynb")
        for name, content in submissions.stamps(submitted).items():
            (folder / name).write_bytes(content)


def notebook(submitted: Path, solution: submissions.Solution, grade: GradeData) -> NotebookNode:
    """The notebook to be shown, from a folder that was handed in.

    `solution` is a `submissions.Solution`, and the grade is plain data.
    """
    try:
        theirs = submissions.notebook_in(submitted, solution)[1].cells
    except NotGradedError:
        theirs = [new_markdown_cell(NO_NOTEBOOK.format(folder=Path(*submitted.parts[-3:])))]
    return new_notebook(
        cells=list(_cells(theirs, solution.notebook, grade)), metadata=_metadata(solution.notebook)
    )


def _metadata(solution: NotebookNode) -> dict[str, Any]:
    return {
        key: solution.metadata[key]
        for key in ("kernelspec", "language_info")
        if key in solution.metadata
    }


def _cells(
    theirs: Iterable[NotebookNode], solution: NotebookNode, grade: GradeData
) -> Iterator[NotebookNode]:
    yield new_markdown_cell(fenced(grade_report.as_text(grade_report.from_data(grade))))
    ours = {mark: cell for cell in solution.cells if (mark := notebooks.grade_id(cell))}
    known = {cell.source for cell in solution.cells if cell.cell_type == "markdown"}
    checks = notebooks.checks_of(solution)
    shown: set[str] = set()
    for cell in theirs:
        name = notebooks.grade_id(cell)
        if name in checks:
            continue  # the lab's own come after the answers
        if name in ours and name not in shown:
            shown.add(name)
            yield _answer(cell, ours[name])
            yield from _checks_after(name, solution, checks, grade, shown)
        else:
            yield _plain(cell, known)
    for name, cell in ours.items():  # what is missing, so that every mark can be given
        if name not in shown:
            shown.add(name)
            yield _check(cell, name, grade) if name in checks else _answer(new_code_cell(), cell)


def _checks_after(
    name: str,
    solution: NotebookNode,
    checks: dict[str, NotebookNode],
    grade: GradeData,
    shown: set[str],
) -> Iterator[NotebookNode]:
    """The check cells that follow an answer in the solution, up to the next answer."""
    names = [mark for cell in solution.cells if (mark := notebooks.grade_id(cell))]
    for following in names[names.index(name) + 1 :]:
        if following not in checks:
            return
        if following not in shown:
            shown.add(following)
            yield _check(checks[following], following, grade)


def _answer(cell: NotebookNode, ours: NotebookNode) -> NotebookNode:
    made = (
        new_code_cell(cell.source)
        if ours.cell_type == "code"
        else new_markdown_cell(fenced(cell.source))
    )
    made.metadata["nbgrader"] = dict(ours.metadata["nbgrader"])
    return made


def _check(cell: NotebookNode, name: str, grade: GradeData) -> NotebookNode:
    lines = [
        text
        for line in grade_report.from_data(grade).criteria
        if line.check == name
        for text in grade_report.lines_of(line)
    ]
    made = new_code_cell(
        cell.source, outputs=[new_output("stream", name="stdout", text="\n".join(lines))]
    )
    made.metadata["nbgrader"] = dict(cell.metadata["nbgrader"])
    return made


def _plain(cell: NotebookNode, known: Container[str]) -> NotebookNode:
    if cell.cell_type == "code":
        return new_code_cell(cell.source)
    return new_markdown_cell(cell.source if cell.source in known else fenced(cell.source))


def fenced(text: str) -> str:
    """Text as Markdown that shows it letter by letter."""
    fence = "~" * (1 + max([2, *map(len, re.findall("~+", text))]))
    return f"{fence}text\n{text}\n{fence}"
