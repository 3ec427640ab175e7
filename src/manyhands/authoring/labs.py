"""Solutions to labs, by nbgrader's generate_assignment.

The reference outputs of check cells are kept.
"""

from __future__ import annotations

import io
import logging
import re
import shutil
import tempfile
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
    NbGraderPreprocessor,
    SaveCells,
)
from traitlets import Dict
from traitlets.config import Config

from manyhands import unit_links
from manyhands.authoring import BuildError, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbformat import NotebookNode


class ClearAnswers(ClearSolutions):
    """nbgrader's own, with a stub that a shell understands where the answer is a batch file."""

    code_stub = Dict(
        {
            "python": "# YOUR CODE HERE\nraise NotImplementedError()",
            "bash": "# YOUR LINES HERE\nexit 1  # not written yet",
        }
    ).tag(config=True)

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        return super()._replace_solution_region(
            cell, "bash" if "#!/bin/bash" in cell.source else language
        )


class ClearUncheckedOutput(NbGraderPreprocessor):
    """Drop all outputs but those of cells tagged `check`.

    They are the target that the learner aims at.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Clear the cell's outputs unless it is a check; nbgrader calls this for each cell."""
        if cell.cell_type == "code" and "check" not in cell.metadata.get("tags", []):
            cell.outputs = []
            cell.execution_count = None
        return cell, resources


class ClearBadges(NbGraderPreprocessor):
    """Drop the badges from a class's lab.

    They would lead the attendees to a place where they cannot hand in.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Take the badges out of a text cell; nbgrader calls this for each cell."""
        if cell.get("id") == unit_links.HEAD:
            cell.source = unit_links.without_badges(cell.source)
        return cell, resources


def preprocessors(gradebook: bool) -> list[type[NbGraderPreprocessor]]:
    """What a solution passes through.

    Only an instructor's own run (nbgrader_config.py) writes to the gradebook, and drops the badges.
    """
    before = [LockCells, ClearAnswers, ClearUncheckedOutput, CheckCellMetadata, ComputeChecksums]
    after = [ClearHiddenTests, ClearMarkScheme, ComputeChecksums, CheckCellMetadata]
    return before + ([ClearBadges, SaveCells] if gradebook else []) + after


def release(solution_folder: Path, name: str) -> dict[str, bytes]:
    """Make the lab of a folder `solutions/NN_topic`: {file name: bytes}.

    Nothing else is written.
    """
    with tempfile.TemporaryDirectory(prefix="mh-") as root:
        shutil.copytree(solution_folder, Path(root) / "solutions" / name, ignore=_not_released)
        _run_nbgrader(root, name)
        made = Path(root) / "labs" / name
        files = {
            path.relative_to(made).as_posix(): path.read_bytes()
            for path in made.rglob("*")
            if path.is_file()
        }
    for file_name, data in files.items():
        if file_name.endswith(".ipynb"):
            files[file_name] = _canonical(data)
        elif file_name.endswith(".py"):
            files[file_name] = stub_of_script(data.decode()).encode()
    return files


def _not_released(folder: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(".") or name == "__pycache__"]


def _run_nbgrader(root: str | Path, name: str) -> None:
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "labs"
    config.CourseDirectory.assignment_id = name
    log = logging.getLogger("manyhands.authoring.nbgrader")
    log.propagate = False
    log_text = io.StringIO()
    log.handlers = [logging.StreamHandler(log_text)]
    course = CourseDirectory(config=config, log=log)
    converter = GenerateAssignment(
        coursedir=course,
        config=config,
        no_database=True,
        preprocessors=preprocessors(gradebook=False),
        log=log,
    )
    try:
        converter.start()
    except (Exception, SystemExit) as error:
        raise BuildError(
            f"nbgrader makes no lab from solutions/{name}: {error}\n{log_text.getvalue()}"
        ) from error


def _canonical(data: bytes) -> bytes:
    """The lab's bytes; its check cells keep the execution counts of the solution."""
    notebook = canonical.from_bytes(data)
    counts = [cell.get("execution_count") for cell in notebook.cells]
    canonical.clean(notebook)
    for cell, count in zip(notebook.cells, counts, strict=True):
        if cell.cell_type == "code":
            cell.execution_count = count
    return canonical.to_bytes(notebook)


def stub_of_script(text: str) -> str:
    """Take the answers out of a script, by nbgrader's own rule.

    An answer is what stands between BEGIN SOLUTION and END SOLUTION.
    """
    if "BEGIN SOLUTION" not in text:
        return text
    cell = nbformat.v4.new_code_cell(text)
    ClearAnswers(enforce_metadata=False)._replace_solution_region(cell, "python")
    return cell.source


def leaks(solution_texts: Iterable[str], lab_text: str) -> list[str]:
    """The lines of a solution that a lab shows, and the marks that must not be in it.

    `solution_texts` are the solution's sources (cells, scripts). A line of the answer counts when
    it has at least two tokens and does not also stand outside the answers, where the learner may
    read it; a long one (six tokens) is found inside another line too.
    """
    leaking = [
        mark
        for mark in ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN", "BEGIN MARK SCHEME")
        if mark in lab_text
    ]
    answers: set[str] = set()
    given: list[str] = []
    for text in solution_texts:
        inside = False
        for line in map(str.strip, text.split("\n")):
            if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
                inside = "BEGIN SOLUTION" in line
            elif inside:
                answers.add(line)
            else:
                given.append(line)
    shown, open_text = {line.strip() for line in lab_text.split("\n")}, "\n".join(given)
    for line in sorted(answers - set(given)):
        length = tokens(line)
        if (length >= 2 and line in shown) or (
            length >= 6 and line in lab_text and line not in open_text
        ):
            leaking.append(line)
    return leaking


def tokens(line: str) -> int:
    """How many Python tokens a line has, comments left out."""
    kinds = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    try:
        return sum(
            token.type in kinds for token in tokenize.generate_tokens(io.StringIO(line).readline)
        )
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return len(re.findall(r"\w+|[^\w\s]", line))


def lab_text(notebook: NotebookNode) -> str:
    """All that a learner can read in a notebook: sources and text outputs."""
    parts: list[str] = []
    for cell in notebook.cells:
        parts.append(cell.source)
        for output in cell.get("outputs", []):
            parts.append(output.get("text", ""))
            parts += [str(data) for data in output.get("data", {}).values()]
            parts += output.get("traceback", [])
    return "\n".join(parts)
