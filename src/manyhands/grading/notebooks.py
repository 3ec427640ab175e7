"""Reading what was handed in, and putting the pristine check cells back."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

TOO_LARGE_BYTES = 20 * 2**20


class NotGraded(Exception):
    """The submission cannot be graded; the message says why and what to do."""


def read(path):
    """The notebook in this file; `NotGraded` if there is none."""
    path = Path(path)
    if not path.is_file():
        raise NotGraded(f"There is no file {path.name} at {path.parent}.")
    if path.stat().st_size > TOO_LARGE_BYTES:
        raise NotGraded(f"{path.name} is larger than {TOO_LARGE_BYTES // 2**20} MB. Clear its outputs and save it again.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about cell ids: they do not matter here
            notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        cells = [(cell.cell_type, cell.source, cell.metadata.get("tags", [])) for cell in notebook.cells]
    except Exception as error:  # whatever is wrong in somebody else's file
        reason = str(error).split("\n")[0][:200]
        raise NotGraded(f"{path.name} is not a notebook that can be read ({type(error).__name__}: {reason}). "
                        "Open it in JupyterLab and save it again, or start from a new copy of the lab.") from None
    if not all(isinstance(source, str) for _, source, _ in cells):
        raise NotGraded(f"{path.name} has a cell whose text is not text. Start from a new copy of the lab.")
    return notebook


def grade_id(cell):
    """The name that ties a cell to the lab's, or None."""
    mark = cell.metadata.get("nbgrader")
    return mark.get("grade_id") if isinstance(mark, dict) else None


def is_check(cell):
    """Whether a cell of a *solution* is a check cell."""
    return cell.cell_type == "code" and "check" in cell.metadata.get("tags", []) and grade_id(cell) is not None


def checks_of(solution):
    """{grade_id: cell} of the solution's check cells, in order."""
    return {grade_id(cell): cell for cell in solution.cells if is_check(cell)}


def answers_of(solution):
    """The grade_ids of the solution's answer cells."""
    return [grade_id(cell) for cell in solution.cells
            if cell.cell_type == "code" and not is_check(cell) and (cell.metadata.get("nbgrader") or {}).get("solution")]


@dataclass
class Step:
    """One cell to run: a check cell's `check` is its grade_id, else it is None."""

    source: str
    check: str | None = None
    where: str = ""
    may_raise: bool = False


@dataclass
class Plan:
    """The cells to run, in order, and what the reader should know about how they were put together."""

    steps: list
    notes: list = field(default_factory=list)


def plan_of_solution(solution):
    """The solution's own code cells."""
    return Plan([_step(cell, number, grade_id(cell) if is_check(cell) else None)
                 for number, cell in enumerate(solution.cells, 1) if cell.cell_type == "code"])


def plan(submission, solution):
    """The submission's cells, with every check cell the solution's: in its order, none missing, none doubled."""
    checks = checks_of(solution)
    known = {grade_id(cell) for cell in solution.cells} - {None}
    found = {grade_id(cell) for cell in submission.cells} & known
    if not found:
        raise NotGraded("This notebook is not a copy of the lab: none of its cells carries the lab's marks. "
                        "Start from a new copy of the lab and paste your answers into it.")
    missing = [name for name in answers_of(solution) if name not in found]
    steps = [(position, _step(cell, position + 1)) for position, cell in enumerate(submission.cells)
             if cell.cell_type == "code" and grade_id(cell) not in checks]
    steps += [(place, _step(checks[name], None, name)) for name, place in _places(submission, solution, checks)]
    steps.sort(key=lambda pair: pair[0])
    notes = [f"The answer cell `{name}` is not in this notebook: it was deleted, or its mark was lost. "
             "Copy that cell from the lab in labs/ and write your answer there." for name in missing]
    return Plan([step for _, step in steps], notes)


def _places(submission, solution, checks):
    """Where each check cell goes, in the solution's order: where the learner has it, but never before an earlier check,
    nor before a cell of the lab that it follows in the solution. A half stands for "just after"."""
    positions = {}
    for position, cell in enumerate(submission.cells):
        positions.setdefault(grade_id(cell), position)
    places, reached = [], -0.5
    for cell in solution.cells:
        name = grade_id(cell)
        if name in checks:
            reached = max(reached, positions.get(name, reached))
            places.append((name, reached))
        elif name in positions:
            reached = max(reached, positions[name] + 0.5)
    return places


def _step(cell, number, check=None):
    may_raise = "raises-exception" in (cell.metadata.get("tags") or [])
    where = check or (f"cell {number}" + (f" ({grade_id(cell)})" if grade_id(cell) else ""))
    return Step(cell.source, check, where, may_raise)


def points_of(cell):
    """The points that a check cell is worth."""
    return (cell.metadata.get("nbgrader") or {}).get("points") or 0
