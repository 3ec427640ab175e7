"""The marks in a notebook's cells that tie them to the lab.

They say which cells are answers and which are checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode


def grade_id(cell: NotebookNode) -> str | None:
    """The name that ties a cell to the lab's, or None."""
    mark = cell.metadata.get("nbgrader")
    name = mark.get("grade_id") if isinstance(mark, dict) else None
    return name if isinstance(name, str) else None


def tags(cell: NotebookNode) -> list[Any]:
    """The tags of a cell; an empty list where they are nothing of the kind."""
    tags_of_cell = cell.metadata.get("tags")
    return tags_of_cell if isinstance(tags_of_cell, list) else []


def is_check(cell: NotebookNode) -> bool:
    """Whether a cell of a *solution* is a check cell."""
    return cell.cell_type == "code" and "check" in tags(cell) and grade_id(cell) is not None


def checks_of(solution: NotebookNode) -> dict[str, NotebookNode]:
    """{grade_id: cell} of the solution's check cells, in order."""
    return {
        name: cell
        for cell in solution.cells
        if is_check(cell) and (name := grade_id(cell)) is not None
    }


def cells_of(solution: NotebookNode) -> set[str | None]:
    """The grade_ids of all the solution's cells that nbgrader records.

    These are checks, answers, and cells that are locked.
    """
    return {
        grade_id(cell)
        for cell in solution.cells
        if any(
            (cell.metadata.get("nbgrader") or {}).get(kind)
            for kind in ("grade", "solution", "task", "locked")
        )
    }


def answer_cells(solution: NotebookNode) -> dict[str, NotebookNode]:
    """{grade_id: cell} of the solution's answer cells, in order."""
    return {
        name: cell
        for cell in solution.cells
        if cell.cell_type == "code"
        and not is_check(cell)
        and (cell.metadata.get("nbgrader") or {}).get("solution")
        and (name := grade_id(cell)) is not None
    }
