"""Grading what was collected of a unit.

nbgrader is loaded only when all grades are known: the processes that grade are forked from this one
and would each hold a part of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from manyhands.grading.classroom.batch import Batch
from manyhands.grading.store.grade_journal import Journal
from manyhands.grading.store.public_references import PUBLIC_SEED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from manyhands.grading.classroom.batch import Outcome
    from manyhands.grading.nbgrader.class_settings import Classroom


class RefusedError(RuntimeError):
    """It cannot be done; the message says why and what to do."""


def grade(
    classroom: Classroom,
    unit: str,
    students: Sequence[str] = (),
    again: bool = False,
    **options: Any,
) -> Outcome:
    """Grade what was collected and has no grade yet, and bring the gradebook up to it.

    Returns a `batch.Outcome`.

    options: those of `Batch`.
    """
    batch = batch_of(classroom, unit, "grades", students, **options)
    batch = replace(batch, seed=batch.grades.seed())
    try:
        outcome = batch.run(again)
    except KeyboardInterrupt:
        _into_gradebook(classroom, unit, batch)
        raise
    outcome.not_shown.update(_into_gradebook(classroom, unit, batch))
    return outcome


def _into_gradebook(classroom: Classroom, unit: str, batch: Batch) -> dict[str, str]:
    from manyhands.grading.classroom.marks import into_gradebook

    return into_gradebook(classroom, unit, batch.grades, batch.folders)


def journal_of(
    classroom: Classroom, unit: str, kind: Literal["grades", "public"] = "grades"
) -> Journal:
    """The unit's grades under the hidden seed, or those of a run under the public one."""
    return Journal(classroom.made().folder / kind / unit)


def batch_of(
    classroom: Classroom,
    unit: str,
    kind: Literal["grades", "public"],
    students: Sequence[str],
    seed: int = PUBLIC_SEED,
    **options: Any,
) -> Batch:
    """The submissions of these students, or of all, as a `Batch`. Raises `RefusedError`."""
    there = classroom.students(unit)
    unknown = [student for student in students if student not in there]
    if unknown:
        raise RefusedError(f"{', '.join(unknown)}: no hand-in for {unit} was collected from them.")
    folders = {
        student: classroom.step_folder("submitted", student, unit)
        for student in (students or there)
    }
    return Batch(
        folders, classroom.solution(unit), journal_of(classroom, unit, kind), seed, **options
    )
