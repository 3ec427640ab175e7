"""From the journal of grades into nbgrader's gradebook, for each student alone."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from nbgrader.utils import parse_utc

from manyhands.grading.compare import describe_error
from manyhands.grading.nbgrader import autograded, gradebook
from manyhands.grading.store import submissions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nbgrader.api import Gradebook

    from manyhands.grading.nbgrader.class_settings import Classroom
    from manyhands.grading.store.grade_journal import Entry, Journal


def into_gradebook(
    classroom: Classroom, unit: str, grades: Journal, students: Iterable[str]
) -> dict[str, str]:
    """Write all these grades into the gradebook and what formgrader shows.

    Both are made from the journal and can be made again.

    Returns {student: what went wrong}.
    """
    with gradebook.opened(classroom) as book:
        known = gradebook.knows(book, unit, submissions.Solution(classroom.solution(unit)).notebook)
    if not known:
        gradebook.register(classroom, unit)
    failed: dict[str, str] = {}
    with grades.lock(), gradebook.opened(classroom) as book:
        for student in students:
            with alone(failed, student, book):
                entry = grades.current(student)
                if entry is not None:
                    submitted = parse_utc(entry["submitted"]) if entry["submitted"] else None
                    gradebook.put(book, unit, student, entry["grade"], submitted, classroom.config)
                    if is_of(entry, classroom.step_folder("submitted", student, unit)):
                        autograded.write(classroom, unit, student, entry["grade"])
    return failed


@contextmanager
def alone(failed: dict[str, str], student: str, book: Gradebook) -> Iterator[None]:
    """What goes wrong with one student is noted by name; the others go on."""
    try:
        yield
    except Exception as problem:  # noqa: BLE001 - one student's failure must not end the others' marks
        book.db.rollback()
        failed[student] = describe_error(problem)


def is_of(entry: Entry | None, folder: Path) -> bool:
    """Whether a grade is that of what lies in the folder now."""
    return entry is not None and entry["key"]["submission"] == submissions.digest(folder)
