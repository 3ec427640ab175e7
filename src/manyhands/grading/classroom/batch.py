"""Grading a class: every submission of a unit that has no grade yet, side by side.

What is done stays done. It can be killed at any moment: each grade is kept as soon as it is known
(see `grade_journal`), and the next run does the rest.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from manyhands.grading import engine, grade_report
from manyhands.grading.classroom import pool
from manyhands.grading.compare import describe_error
from manyhands.grading.notebooks import NotGradedError
from manyhands.grading.store import grade_journal, submissions
from manyhands.grading.store.beneath import Below
from manyhands.isolation import choose, container, kernel_outputs
from manyhands.isolation.kernel_limits import Limits
from manyhands.machine import processors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import TextIO

    from manyhands.grading.compare import Shown
    from manyhands.grading.grade_report import GradeData
    from manyhands.grading.store.grade_journal import Key

# a kernel that starts leaves its core to others a part of the time, and the ranks of a cluster use
# all cores
SLOTS_PER_CORE = 6
SIMPLE_SLOTS, CLUSTER_SLOTS = 4, 6
SIMPLE_BYTES, CLUSTER_BYTES = 600 * 2**20, 1600 * 2**20  # what one of them usually takes
REFERENCE = "the solution"


class NoSandboxError(RuntimeError):
    """Submissions are not run outside a sandbox."""


@dataclass
class Outcome:
    """What a run of a batch did, by student."""

    graded: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # had a grade for this very work already
    # student: (points before, points now, reason)
    changed: dict[str, tuple[float, float, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # student: why the grader could not
    # student: why a grade that is kept is not in the gradebook
    not_shown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """The submissions of one unit.

    `folders` is {student: folder}, `solution` a path, `grades` a `Journal`.

    seed: that of the checks. progress: called as `progress(done, of, student)` whenever a grade is
    there.
    """

    folders: dict[str, Path]
    solution: Path
    grades: grade_journal.Journal
    seed: int
    limits: Limits = Limits()
    jobs: int = 0  # cores to use; 0 is all of them
    sandboxed: bool = True
    progress: Callable[[int, int, str], object] = lambda done, of, student: None

    def run(self, again: bool = False) -> Outcome:
        """Grade what has no grade, with `again` everything; an `Outcome`.

        Raises `NoSandboxError`, `grade_journal.BusyError`, `engine.SolutionFailsError`.
        """
        lack = choose.why_none()
        if self.sandboxed and lack:
            raise NoSandboxError(
                f"Submissions are graded in a sandbox only, and there is none here: {lack}"
            )
        if self.sandboxed and choose.shows(self.solution):
            raise NoSandboxError(engine.SHOWN.format(path=self.solution))
        with self.grades.lock() as lock, _scratch(lock) as scratch:
            return self._run(again, lock, scratch)

    def _run(self, again: bool, lock: TextIO, scratch: Path) -> Outcome:
        solution, outcome = submissions.Solution(self.solution), Outcome()
        todo: dict[str, Key] = {}
        digest = solution.digest
        for student, folder in self.folders.items():
            with _alone(outcome, student):
                key: Key = {
                    "submission": submissions.digest(folder),
                    "solution": digest,
                    "seed": self.seed,
                }
                if not again and self._kept(student, key):
                    outcome.kept.append(student)
                else:
                    todo[student] = key
        self.progress(0, len(todo), "the solution" if todo else "")
        if todo:
            kernel_outputs.prepare()
        wanted = self._reference(solution, scratch, lock) if todo else None
        for student, result in self._pool(
            list(todo),
            lambda student: self._grade(student, solution, wanted),
            solution,
            scratch,
            lock,
        ):
            with _alone(outcome, student):
                self._keep(student, todo[student], result, outcome)
            self.progress(len(outcome.graded) + len(outcome.failed), len(todo), student)
        return outcome

    def _kept(self, student: str, key: Key) -> bool:
        """Whether this very work has a grade.

        Where it is not the last one that was given, it becomes that again.
        """
        history = self.grades.history(student)
        old = next(
            (entry for entry in reversed(history) if grade_journal.same_work(entry["key"], key)),
            None,
        )
        if old is not None and old is not history[-1]:
            again = grade_journal.entry(
                key,
                old["grade"],
                grade_journal.reason(history[-1], key),
                self._handed_in_at(student),
            )
            self.grades.add(student, again)
        return old is not None

    def _keep(
        self, student: str, key: Key, result: GradeData | pool.Failed, outcome: Outcome
    ) -> None:
        if isinstance(result, pool.Failed):
            outcome.failed[student] = result.why
            return
        before = self.grades.current(student)
        if not (
            before
            and grade_journal.same_work(before["key"], key)
            and grade_journal.same(before["grade"], result)
        ):
            reason = grade_journal.reason(before, key)
            self.grades.add(
                student, grade_journal.entry(key, result, reason, self._handed_in_at(student))
            )
            if before and before["grade"]["points"] != result["points"]:
                outcome.changed[student] = before["grade"]["points"], result["points"], reason
        outcome.graded.append(student)

    def _handed_in_at(self, student: str) -> datetime | None:
        return submissions.handed_in_at(self.folders[student])

    def _pool(
        self,
        jobs: list[str],
        work: Callable[[str], GradeData],
        solution: submissions.Solution,
        scratch: Path,
        lock: TextIO,
    ) -> Iterator[tuple[str, GradeData | pool.Failed]]:
        """Start the jobs, on all slots of the cores, or on fewer where the memory would not do."""
        cost, memory = (
            (CLUSTER_SLOTS, CLUSTER_BYTES) if solution.clustered else (SIMPLE_SLOTS, SIMPLE_BYTES)
        )
        cores = self.jobs or processors()
        slots = max(
            1, min(SLOTS_PER_CORE * cores, psutil.virtual_memory().available // memory * cost)
        )
        return pool.run(
            jobs,
            work,
            slots=slots,
            cost=lambda job: cost,
            scratch=scratch,
            wall_s=self.limits.wall_s,
            closed=[lock],
        )

    def _reference(self, solution: submissions.Solution, scratch: Path, lock: TextIO) -> Shown:
        """What the solution shows, which is run if need be.

        It runs in a process of its own: this one must stay without threads.
        """
        image = choose.image() if self.sandboxed else ""

        def work(_: str) -> Shown | pool.Failed:
            try:
                return engine.reference(
                    self.solution, solution.notebook, self.seed, limits=self.limits, image=image
                )
            except (engine.SolutionFailsError, container.NotStartedError) as problem:
                return pool.Failed(str(problem))

        ((_, shown),) = pool.run(
            [REFERENCE],
            work,
            slots=1,
            cost=lambda job: 1,
            scratch=scratch,
            wall_s=self.limits.wall_s,
            closed=[lock],
        )
        if isinstance(shown, pool.Failed):
            raise engine.SolutionFailsError(shown.why)
        return shown

    def _grade(
        self, student: str, solution: submissions.Solution, wanted: Shown | None
    ) -> GradeData:
        """The grade of one submission as plain data. Runs in a process of its own."""
        folder = self.folders[student]
        try:
            name, _, note = submissions.notebook_in(folder, solution)
        except NotGradedError as problem:
            return grade_report.as_data(
                engine.not_graded(
                    self.solution, " ".join([str(problem), *submissions.notes_of(folder)])
                )
            )
        with tempfile.TemporaryDirectory(prefix="mh-") as place, Below(folder) as there:
            notes = (
                ([note] if note else [])
                + submissions.copy(there, place, name)
                + submissions.notes_of(folder)
            )
            grade = engine.grade(
                Path(place) / name,
                self.solution,
                seed=self.seed,
                wanted=wanted,
                sandboxed=self.sandboxed,
                limits=self.limits,
            )
        grade.notes[:0] = notes
        return grade_report.as_data(grade)


@contextmanager
def _alone(outcome: Outcome, student: str) -> Iterator[None]:
    """What goes wrong with one student is told by name; the others go on."""
    try:
        yield
    except Exception as problem:  # noqa: BLE001 - one student's failure must not end the others' grading
        outcome.failed[student] = describe_error(problem)


@contextmanager
def _scratch(lock: TextIO) -> Iterator[Path]:
    """A folder for all temporary files of a run.

    That of an earlier run which was killed is removed.
    """
    lock.seek(0)
    before = Path(lock.read().strip() or ".")
    if before.name.startswith("mh-batch-") and before.parent == Path(tempfile.gettempdir()):
        shutil.rmtree(before, ignore_errors=True)
    place = Path(tempfile.gettempdir()) / f"mh-batch-{secrets.token_hex(4)}"
    lock.truncate(0)
    lock.write(str(place))
    lock.flush()
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        with suppress(OSError):
            shutil.rmtree(place)
        lock.truncate(0)
