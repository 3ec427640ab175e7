"""Sources: the text that people edit, in jupytext's py:percent form, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jupytext
import nbformat
from jupytext.magics import is_magic
from jupytext.stringparser import StringParser

from manyhands.authoring import BuildError, hidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nbformat import NotebookNode

TAGS = {
    "setup": "run again after the cluster was healed",
    "measured": "timings, whose outputs are not compared and are kept by a rebuild",
    "raises-exception": "an error that is part of the lesson",
    "solution": "an answer, of which the lab shows only a stub",
    "check": "a graded check, whose reference output stays visible in the lab",
}
_OPTIONS = {"tags", "grade_id", "points", "unit"}
_FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": True}
_FILTERS = {"notebook_metadata_filter": "-all", "cell_metadata_filter": "all"}
LONGEST_LINE = 92  # letters of code that JupyterLab shows side by side in a window of 1024 pixels
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PERCENT_OR_BANG = re.compile(r"\s*(# ?)*([A-Za-z_]\w*\s*=\s*)?[%!]")


def read(text: str, name: str = "source") -> NotebookNode:
    """The notebook that a source stands for.

    Its cells have `tags`, `grade_id`, `points` and `unit`, no outputs, no ids.
    """
    notebook = jupytext.reads(text, fmt=dict(_FORMAT))
    for cell in notebook.cells:
        cell.metadata.pop("lines_to_next_cell", None)
        cell.metadata.pop("cell_marker", None)
        if "tags" in cell.metadata and not cell.metadata["tags"]:
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            cell.source = hidden.labelled(cell.source)
    _refuse_bare_magics(text, name)
    for number, cell in enumerate(notebook.cells, 1):
        problem = _problem(cell)
        if problem:
            raise BuildError(f"{name}, cell {number}: {problem}\n{_first_lines(cell.source)}")
    _refuse_doubles(notebook, name)
    notebook.metadata = nbformat.NotebookNode()
    return notebook


def write(notebook: NotebookNode) -> str:
    """The canonical text of a notebook's cells: what `read` reads back to the same cells."""
    plain = nbformat.v4.new_notebook()
    for cell in notebook.cells:
        make = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
        options = {
            key: cell.metadata[key]
            for key in ("tags", "grade_id", "points", "unit")
            if cell.metadata.get(key)
        }
        plain.cells.append(make(cell.source, metadata={**options, "lines_to_next_cell": 1}))
    return jupytext.writes(plain, fmt={**_FORMAT, **_FILTERS}).rstrip("\n") + "\n"


def same_cells(first: NotebookNode, second: NotebookNode) -> bool:
    """Whether two notebooks have the same cells: type, text and options."""
    return [_essence(cell) for cell in first.cells] == [_essence(cell) for cell in second.cells]


def _essence(cell: NotebookNode) -> tuple[str, str, dict[str, Any]]:
    return (
        cell.cell_type,
        cell.source,
        {key: cell.metadata[key] for key in _OPTIONS if cell.metadata.get(key)},
    )


def _problem(cell: NotebookNode) -> str | None:
    """What is wrong with a cell's header or comments, in words, or None."""
    if not cell.source.strip():
        return "the cell is empty"
    unknown = sorted(set(cell.metadata) - _OPTIONS)
    if unknown:
        return f"unknown option {unknown[0]!r}; there are: {', '.join(sorted(_OPTIONS))}"
    tags = cell.metadata.get("tags", [])
    for tag in tags:
        if tag not in TAGS:
            return f"unknown tag {tag!r}; there are: {', '.join(TAGS)}"
    graded = {"solution", "check"} & set(tags)
    if len(graded) == 2:
        return "a cell cannot be both an answer and a check"
    if graded and not _GRADE_ID.fullmatch(str(cell.metadata.get("grade_id", ""))):
        return 'an answer or a check needs a name of letters, digits, _ and -: grade_id="..."'
    if not graded and "grade_id" in cell.metadata:
        return 'grade_id goes with tags=["solution"] or tags=["check"]'
    points = cell.metadata.get("points")
    if "check" in tags and not (type(points) is int and points > 0):
        return "a check needs points=N, a whole number above 0"
    if "check" not in tags and points is not None:
        return 'points go with tags=["check"]'
    return _problem_in_source(cell, tags)


def _problem_in_source(cell: NotebookNode, tags: Sequence[str]) -> str | None:
    source = cell.source
    if cell.cell_type == "code" and re.search(r"^\s*#\s*(NBVAL_|PYTEST_VALIDATE_)", source, re.M):
        return 'leave the marks of nbval out: tags=["measured"] keeps an output from being compared'
    if long := [
        line for line in source.split("\n") if cell.cell_type == "code" and len(line) > LONGEST_LINE
    ]:
        return (
            f"a line of code has {len(long[0])} characters, but only {LONGEST_LINE} are visible "
            f"without scrolling, so break it: {long[0].strip()[:40]} ..."
        )
    if ("BEGIN SOLUTION" in source) != ("END SOLUTION" in source):
        return "BEGIN SOLUTION and END SOLUTION come in pairs"
    if "BEGIN SOLUTION" in source and "solution" not in tags:
        return 'BEGIN SOLUTION goes with tags=["solution"] grade_id="..."'
    if "solution" in tags and cell.cell_type == "code" and "BEGIN SOLUTION" not in source:
        return "an answer cell needs ### BEGIN SOLUTION and ### END SOLUTION inside its stub"
    if "BEGIN HIDDEN" in source:
        return "hidden tests do not exist, because the grader gives the kernel a hidden seed"
    if cell.cell_type == "code":
        line = _comment_that_becomes_a_command(source)
        if line:
            return (
                "jupytext reads this comment as a command, so word it differently: # "
                f"{line.strip()}"
            )
    return None


def _comment_that_becomes_a_command(source: str) -> str | None:
    """The first line that is a command without % or !

    (`why?`, `ls`): most likely it was meant as a comment.
    """
    for line in _outside_strings(source):
        if is_magic(line, "python", True, True) and not _PERCENT_OR_BANG.match(line):
            return line
    return None


def _outside_strings(source: str) -> Iterator[str]:
    parser = StringParser("python")
    for line in source.split("\n"):
        if not parser.is_quoted():
            yield line
        parser.read_line(line)


def _refuse_bare_magics(text: str, name: str) -> None:
    """Refuse a magic that is not a comment in the source.

    The file stays a Python file that tools can read.
    """
    parser = StringParser("python")
    for number, line in enumerate(text.split("\n"), 1):
        if not parser.is_quoted() and re.match(r"\s*(%{1,2}[a-zA-Z]|!)", line):
            raise BuildError(
                f"{name}, line {number}: write the magic as a comment: # {line.strip()}"
            )
        if not line.startswith("#"):
            parser.read_line(line)


def _refuse_doubles(notebook: NotebookNode, name: str) -> None:
    seen = set()
    for cell in notebook.cells:
        grade_id = cell.metadata.get("grade_id")
        if grade_id in seen:
            raise BuildError(f"{name}: two cells are called grade_id={grade_id!r}")
        if grade_id:
            seen.add(grade_id)


def _first_lines(source: str, count: int = 3) -> str:
    return "\n".join("    " + line for line in source.split("\n")[:count])
