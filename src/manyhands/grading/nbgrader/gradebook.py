"""Grades in nbgrader's gradebook, where formgrader shows them and manual marks are given.

What is written are the autograder's own columns; what a person has given (marks, comments, extra
credit) is never touched.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import warnings
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nbformat.v4 import new_notebook

from manyhands.checks.record import BLOCKED
from manyhands.grading import grade_report, notebooks
from manyhands.learner.released import COURSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from nbformat import NotebookNode
    from nbgrader.api import Gradebook
    from traitlets.config import Config

    from manyhands.grading.grade_report import AnyCriterion, GradeData
    from manyhands.grading.nbgrader.class_settings import Classroom

LEFT_S = 3600  # age of a folder that nobody is at work in any more
LOCKED = (
    "{path} is locked: another program, such as formgrader or a second `manyhands` command, is "
    "writing to it. Wait until it has finished, then run the command again."
)
NOT_WRITTEN = (
    "{path} could not be written ({reason}). Check the free space and your permissions, then run "
    "the command again."
)
UNREADABLE = (
    "{path} cannot be used as a gradebook ({reason}). Move it aside and run the command again, "
    "which writes every grade anew from the folder grades next to it. Marks given by hand exist "
    "only in the old file, so keep it."
)
SAID = {
    "locked": LOCKED,
    "disk is full": NOT_WRITTEN,
    "readonly": NOT_WRITTEN,
    "disk I/O error": NOT_WRITTEN,
}
REFUSED = """nbgrader does not take {unit} into its gradebook: {problem}
If checks were added or removed since the first one was graded, move classroom/gradebook.db aside and run `manyhands grade {unit}` again:
all grades are written anew from classroom/grades/, but marks given by hand are in the old file only.
{said}"""


class GradebookError(RuntimeError):
    """nbgrader refuses; the message holds what it said."""


@contextmanager
def opened(classroom: Classroom) -> Iterator[Gradebook]:
    """nbgrader's Gradebook of the class; made in one step if there is none.

    `GradebookError` where its file is locked, or is not a gradebook that can be read.
    """
    from nbgrader.api import Gradebook

    path = Path(classroom.course.db_url.removeprefix("sqlite:///"))
    with _our_programs_found(), _database_errors_in_words(path):
        if not path.exists():
            with _folder_beside(classroom) as folder, _temporary_files_in(folder):
                Gradebook(f"sqlite:///{folder}/gradebook.db", COURSE).close()
                (Path(folder) / "gradebook.db").chmod(0o600)
                with suppress(FileExistsError):  # somebody was faster
                    os.link(Path(folder) / "gradebook.db", path)
        _refuse_foreign(path)
        with Gradebook(classroom.course.db_url, COURSE) as book, warnings.catch_warnings():
            # of nbgrader's own calls
            warnings.filterwarnings("ignore", ".*not in session", RuntimeWarning)
            yield book


@contextmanager
def _database_errors_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        # SQLAlchemy wraps what the database itself has raised
        reason = getattr(problem, "orig", problem)
        if not isinstance(reason, sqlite3.DatabaseError) or isinstance(
            reason, sqlite3.IntegrityError
        ):
            raise
        text = next((text for part, text in SAID.items() if part in str(reason)), UNREADABLE)
        raise GradebookError(text.format(path=path, reason=reason)) from None


def _refuse_foreign(path: Path) -> None:
    """nbgrader would add its tables to the database of another program.

    The file is opened for writing, because SQLite first takes back what a killed process has
    written only in part.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as database:
        tables = {
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    if tables and "alembic_version" not in tables:
        raise GradebookError(
            UNREADABLE.format(path=path, reason="it is the database of a different program")
        )


@contextmanager
def _our_programs_found() -> Iterator[None]:
    """Put the environment's programs on the search path.

    nbgrader starts `alembic` by its name.
    """
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + before
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextmanager
def _folder_beside(classroom: Classroom) -> Iterator[str]:
    """A folder of the class for what nbgrader makes on the way.

    Those of processes that were killed are removed, an hour later.
    """
    home = classroom.made().folder
    for left in home.glob(".new-*"):
        with suppress(OSError):
            if left.is_dir() and time.time() - left.stat().st_mtime > LEFT_S:
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".new-") as folder:
        yield folder


@contextmanager
def _temporary_files_in(folder: str) -> Iterator[None]:
    """nbgrader leaves a temporary folder behind when it makes a gradebook."""
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        yield
    finally:
        tempfile.tempdir = before


def register(classroom: Classroom, unit: str) -> None:
    """Tell the gradebook what cells the unit has; nothing of the clone is written.

    `GradebookError` if nbgrader refuses.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    from manyhands.authoring.labs import preprocessors

    with opened(classroom):
        pass
    with _folder_beside(classroom) as made:
        config = Config()
        config.CourseDirectory.update(classroom.config.CourseDirectory)
        config.CourseDirectory.release_directory = made
        config.CourseDirectory.assignment_id = unit
        log, log_text = quiet_log("register")
        course = CourseDirectory(config=config, log=log)
        converter = GenerateAssignment(
            coursedir=course, config=config, log=log, preprocessors=preprocessors(gradebook=True)
        )
        try:
            converter.start()
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever nbgrader raises, its output says more
            raise GradebookError(
                REFUSED.format(unit=unit, problem=problem, said=log_text.getvalue())
            ) from None


def knows(book: Gradebook, unit: str, solution: NotebookNode) -> bool:
    """Whether the gradebook has the cells of a unit as its solution (a notebook) has them now.

    nbgrader writes them one by one, grade cells first and source cells last: where it was killed in
    between, the last are missing.
    """
    from nbgrader.api import MissingEntry

    try:
        notebook = book.find_notebook(unit, unit)
    except MissingEntry:
        return False
    checks, all_cells = (
        {cell.name for cell in cells} for cells in (notebook.grade_cells, notebook.source_cells)
    )
    return checks == set(notebooks.checks_of(solution)) and all_cells == notebooks.cells_of(
        solution
    )


def quiet_log(name: str) -> tuple[logging.Logger, io.StringIO]:
    """(log, what it was told): a log for nbgrader that shows nothing on the terminal."""
    log, log_text = logging.getLogger(f"manyhands.nbgrader.{name}"), io.StringIO()
    log.propagate, log.handlers = False, [logging.StreamHandler(log_text)]
    return log, log_text


def put(
    book: Gradebook,
    unit: str,
    student: str,
    grade: GradeData,
    submitted: datetime | None,
    config: Config | None = None,
) -> None:
    """Write one grade (plain data) into the gradebook; writing it twice changes nothing more."""
    book.update_or_create_student(student)
    book.update_or_create_submission(
        unit, student, **({"timestamp": submitted} if submitted else {})
    )
    notebook = book.find_submission_notebook(unit, unit, student)
    checks = by_check(grade)
    for row in notebook.grades:
        lines = checks.get(row.name)
        if lines is None:
            continue
        counted = sum(line.points for line in lines if line.status != BLOCKED)
        if not grade["verdict"] and row.cell.max_score != counted:
            row.cell.max_score = counted
        earned = float(sum(line.earned for line in lines))
        if row.auto_score is None or row.auto_score != earned:
            row.auto_score = earned
            row.needs_manual_grade = row.manual_score is not None
    for row in notebook.comments:
        row.auto_comment = comment(checks.get(f"{row.name}-check", []), grade)
    book.db.commit()
    _late_penalty(unit, student, book, config)


def by_check(grade: GradeData) -> dict[str, list[AnyCriterion]]:
    """{check: its criteria} of a grade."""
    checks: dict[str, list[AnyCriterion]] = {}
    for line in grade_report.from_data(grade).criteria:
        checks.setdefault(line.check, []).append(line)
    return checks


def comment(lines: Sequence[AnyCriterion], grade: GradeData) -> str | None:
    """The criteria of a check in words, for the gradebook.

    Nothing in them comes from the hidden seed or from the learner.
    """
    if grade["verdict"]:
        return grade["verdict"]
    return (
        "\n".join(f"{line.status.upper()} {grade_report.share(line)} {line.text}" for line in lines)
        or None
    )


def _late_penalty(unit: str, student: str, book: Gradebook, config: Config | None) -> None:
    """Take off what nbgrader's LateSubmissionPlugin says.

    It says so where the instructor has set one and a time that was due.
    """
    from nbgrader.preprocessors import AssignLatePenalties

    submission = book.find_submission(unit, student)
    if submission.duedate is None:
        return
    log, _ = quiet_log("late")
    resources = {
        "nbgrader": {
            "notebook": unit,
            "assignment": unit,
            "student": student,
            "db_url": str(book.engine.url),
        }
    }
    AssignLatePenalties(config=config, log=log).preprocess(new_notebook(), resources)
