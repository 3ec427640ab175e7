"""Grading what was collected of a unit.

nbgrader is loaded only when all grades are known: the processes that grade are forked from this one
and would each hold a part of it.
"""

from dataclasses import replace

from manyhands.grading.classroom.batch import Batch
from manyhands.grading.store.grade_journal import Journal

PUBLIC_SEED = 0


class Refused(RuntimeError):
    """It cannot be done; the message says why and what to do."""


def grade(classroom, unit, students=(), again=False, **options):
    """Grade what was collected and has no grade yet, and bring the gradebook up to it; a
    `batch.Outcome`.

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


def _into_gradebook(classroom, unit, batch):
    from manyhands.grading.classroom.marks import into_gradebook

    return into_gradebook(classroom, unit, batch.grades, batch.folders)


def journal_of(classroom, unit, kind="grades"):
    return Journal(classroom.made().folder / kind / unit)


def batch_of(classroom, unit, kind, students, seed=PUBLIC_SEED, **options):
    """The submissions of these students, or of all, as a `Batch`. Raises `Refused`."""
    there = classroom.students(unit)
    unknown = [student for student in students if student not in there]
    if unknown:
        raise Refused(f"{', '.join(unknown)}: no hand-in for {unit} was collected from them.")
    folders = {
        student: classroom.place("submitted", student, unit) for student in (students or there)
    }
    return Batch(
        folders, classroom.solution(unit), journal_of(classroom, unit, kind), seed, **options
    )
