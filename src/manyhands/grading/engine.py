"""Grading one submission.

This takes pristine check cells, a hidden seed, a sandbox, and the comparison outside the kernel.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyhands.checks.hints import hints_of
from manyhands.checks.record import BLOCKED, FAIL
from manyhands.grading import notebooks
from manyhands.grading.compare import Criterion, compare, in_a_line, records
from manyhands.grading.notebooks import NotGradedError
from manyhands.grading.store import hidden_seed, references
from manyhands.grading.store.beneath import Below
from manyhands.grading.submission_limits import FILE_AT_LEAST_BYTES, FOLDER_BYTES
from manyhands.isolation import choose
from manyhands.isolation.kernel import Kernel, KernelEndedError
from manyhands.isolation.kernel_limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from nbformat import NotebookNode

    from manyhands.grading.compare import Shown
    from manyhands.grading.notebooks import Plan, Step
    from manyhands.isolation.kernel_outputs import CellRun

    Progress = Callable[[str, int, int], object]  # progress(what, done, of)

NOT_RUN = "not run"
NO_CLUSTER = "ClusterNotStarted"  # the error's name
SLOW = "it took more than {cell_s:.0f} s and was interrupted."
TWICE = (
    "The cluster did not start in two attempts. Grade it again when the machine has less to do. "
    "{note}"
)
TOO_MUCH = (
    f"The folder holds more than {FOLDER_BYTES // 2**20} MB, too many files, or folders that are "
    "too deep, so not all of them were copied."
)
SHOWN = (
    "Every submission could read the solution {path}, because it is in a folder that the sandbox "
    "shows. Keep the course elsewhere."
)
ENDED = {
    "total": (
        "The notebook took more than {total_s:.0f} s in total. The check cells after that point "
        "were not run."
    ),
    "cell": (
        "A cell took more than {cell_s:.0f} s and could not be interrupted. The cells after it were"
        " not run."
    ),
    "memory": (
        "The notebook used more than {memory_gb:.1f} GB of memory. The cells after that point were "
        "not run."
    ),
    "processes": (
        "The notebook started more than {processes} processes. The cells after that point were not "
        "run."
    ),
    "output": (
        "A cell showed more than {output_mb:.0f} MB, or closed its connection. The cells after it "
        "were not run."
    ),
    "died": "The kernel ended while it ran a cell. The cells after it were not run.",
    "start": "The kernel did not start within {start_s:.0f} s.",
}


@dataclass
class Grade:
    """What a submission is worth, criterion by criterion."""

    unit: str
    criteria: list[Criterion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdict: str = ""  # why nothing could be graded, or empty
    sandbox: str = ""
    no_sandbox: str = ""  # why not, in the words of the machine: for who asks
    seconds: float = 0.0
    seed: str = "a hidden seed"

    @property
    def points(self) -> float:
        """The points that all criteria bring."""
        return sum(criterion.earned for criterion in self.criteria)

    @property
    def max(self) -> float:
        """All points but those of blocked criteria."""
        return sum(criterion.points for criterion in self.criteria if criterion.status != BLOCKED)

    @property
    def full(self) -> bool:
        """Whether nothing failed, and something could be checked."""
        return (
            not self.verdict
            and self.max > 0
            and all(criterion.status != FAIL for criterion in self.criteria)
        )

    @property
    def hints(self) -> list[str]:
        """The names of the hints that help with what failed."""
        failed = {
            criterion.check.removesuffix("-check")
            for criterion in self.criteria
            if criterion.status == FAIL
        }
        return [
            name for name in sorted(hints_of(self.unit[:2])) if name.split("-", 1)[-1] in failed
        ]


class SolutionFailsError(RuntimeError):
    """The solution itself does not pass its checks on this machine."""


def grade(
    submission_path: str | Path,
    solution_path: str | Path,
    *,
    seed: int | None = None,
    wanted: Shown | None = None,
    sandboxed: bool | None = None,
    limits: Limits = Limits(),
    progress: Progress | None = None,
    cache: bool = True,
    slot: AbstractContextManager[Any] = nullcontext(),
) -> Grade:
    """Grade a notebook against its solution; the file that was handed in is only read.

    seed: None draws a hidden one. wanted: the reference under that seed, where the caller has it;
    the released lab does then for the solution. sandboxed: None uses a sandbox if there is one,
    True insists, False does without. progress: called as `progress(what, done, of)` while cells
    run. slot: a context manager, entered while kernels run. Returns a `Grade`; raises
    `SolutionFailsError`.
    """
    report: Progress = progress or (lambda what, done, of: None)
    solution_path = Path(solution_path)
    result = Grade(solution_path.stem)
    solution = notebooks.read(solution_path)
    try:
        plan = notebooks.plan(notebooks.read(submission_path), solution)
    except NotGradedError as problem:
        return not_graded(solution_path, problem)
    lack = None if sandboxed is False else choose.why_none()
    if sandboxed and lack:
        raise RuntimeError(f"there is no sandbox: {lack}")
    sandboxed = not lack if sandboxed is None else sandboxed
    if sandboxed and wanted is None and choose.shows(solution_path):
        raise RuntimeError(SHOWN.format(path=solution_path))
    result.sandbox, result.no_sandbox = _where(sandboxed, lack), "" if sandboxed else lack or ""
    image = choose.image() if sandboxed else ""
    seed = hidden_seed.draw(solution_path, solution, image) if seed is None else seed
    result.seed = "the public seed" if seed == 0 else result.seed
    with slot, tempfile.TemporaryDirectory(prefix="mh-") as folder:
        started = time.monotonic()
        wanted = wanted or reference(
            solution_path,
            solution,
            seed,
            limits=limits,
            progress=report,
            cache=cache,
            image=image,
        )
        result.notes += plan.notes
        result.notes += copy_beside(submission_path, folder)
        try:
            shown, notes = run(
                plan,
                folder,
                seed,
                sandboxed,
                limits,
                lambda done, of: report("your notebook", done, of),
            )
        except NotGradedError as problem:
            return not_graded(solution_path, problem)
    result.notes += notes
    for name, cell in notebooks.checks_of(solution).items():
        result.criteria += compare(
            name, notebooks.points_of(cell), shown.get(name, []), wanted[name]
        )
    result.seconds = time.monotonic() - started
    return result


def _where(sandboxed: bool, lack: str | None) -> str:
    """For the report: how the submission was kept apart, or why it was not."""
    if sandboxed:
        return "in a sandbox" + (" (a container)" if choose.contained() else "")
    return "without a sandbox" + (" (that changes no points)" if lack else "")


def not_graded(solution_path: str | Path, problem: object) -> Grade:
    """The grade of what cannot be graded: no points, and `problem` as its verdict."""
    solution = notebooks.read(solution_path)
    criteria = [
        Criterion(name, name, NOT_RUN, notebooks.points_of(cell), FAIL)
        for name, cell in notebooks.checks_of(solution).items()
    ]
    return Grade(Path(solution_path).stem, criteria, verdict=str(problem))


def reference(
    solution_path: str | Path,
    solution: NotebookNode,
    seed: int,
    *,
    limits: Limits = Limits(),
    progress: Progress | None = None,
    cache: bool = True,
    image: str = "",
) -> Shown:
    """{grade_id: outputs} of the solution's check cells under this seed.

    They are run if they are not kept already, in a container of the image if one is named.
    """
    name = references.key(solution_path, solution, seed, image)
    stored = references.load(name) if cache else None
    if stored is not None:
        return stored
    report = progress or (lambda what, done, of: None)
    with tempfile.TemporaryDirectory(prefix="mh-") as folder:
        copy_beside(solution_path, folder)
        plan = notebooks.plan_of_solution(solution)
        try:
            shown, notes = run(
                plan,
                folder,
                seed,
                bool(image),
                limits,
                lambda done, of: report("running the solution for reference", done, of),
            )
        except NotGradedError as problem:
            raise SolutionFailsError(
                f"The solution cannot be run on this machine: {problem}"
            ) from None
    _refuse_failures(solution, shown, notes)
    if cache:
        references.save(name, shown)
    return shown


def _refuse_failures(solution: NotebookNode, shown: Shown, notes: Iterable[str]) -> None:
    problems = list(notes)
    for name in notebooks.checks_of(solution):
        outputs = shown.get(name)
        shown_records = records(outputs or [])
        if outputs is None or len(shown_records) > 1:
            problems.append(f"{name}: {len(shown_records)} records")
        for record in shown_records:
            problems += [
                f"{name}: {criterion['name']}: {criterion['detail']}"
                for criterion in record["criteria"]
                if criterion["status"] == FAIL
            ]
    if problems:
        raise SolutionFailsError(
            "The solution does not pass its own checks on this machine:\n  " + "\n  ".join(problems)
        )


def run(
    plan: Plan,
    folder: str | Path,
    seed: int,
    sandboxed: bool,
    limits: Limits,
    progress: Callable[[int, int], object],
) -> tuple[Shown, list[str]]:
    """Run a plan in a fresh kernel.

    Returns ({grade_id: outputs of the check cell}, notes about what went wrong).

    A cell whose cluster does not start is run once more, within the same limits; then
    `NotGradedError`. So is a set-up cell that takes too long: on a busy machine its imports can
    leave too little time for the start.
    """
    shown: Shown = {}
    notes: list[str] = []
    errors: list[str] = []
    step: Step | None = None
    try:
        with Kernel(folder, seed, sandboxed, limits) as kernel:
            for number, step in enumerate(plan.steps):
                progress(number, len(plan.steps))
                ran = kernel.run(step.source)
                if _no_start(step, ran):
                    ran = kernel.run(step.source)
                    if _no_start(step, ran):
                        why = (
                            ran.error
                            if NO_CLUSTER in (ran.error or "")
                            else SLOW.format(**vars(limits))
                        )
                        raise NotGradedError(
                            TWICE.format(note=in_a_line(f"{step.where}: {why}", 400))
                        )
                if step.check:
                    shown[step.check] = ran.outputs
                if ran.interrupted:
                    notes.append(f"{step.where}: {SLOW.format(**vars(limits))}")
                elif ran.error and not step.may_raise:
                    errors.append(in_a_line(f"{step.where}: {ran.error}", 400).rstrip(" :"))
            progress(len(plan.steps), len(plan.steps))
    except KernelEndedError as end:
        facts = {
            **vars(limits),
            "memory_gb": limits.memory_bytes / 2**30,
            "output_mb": limits.output_bytes / 2**20,
        }
        notes.append((f"{step.where}: " if step else "") + ENDED[end.reason].format(**facts))
    return shown, notes + errors[:5]


def _no_start(step: Step, ran: CellRun) -> bool:
    """Whether no cluster came of a cell that was run."""
    return NO_CLUSTER in (ran.error or "") or (step.sets_up and ran.interrupted)


def copy_beside(notebook_path: str | Path, folder: str | Path) -> list[str]:
    """Copy what lies beside a notebook, such as scripts that it launches.

    Notebooks, hidden files and links are left out. Returns notes if not all was copied.

    The files may be somebody else's, who changes them meanwhile (see `beneath`); no more is read
    than there is room for.
    """
    bytes_left = FOLDER_BYTES
    with Below(Path(notebook_path).parent.resolve()) as base:
        entries = base.files(_left_out)
        for entry in entries:
            if (
                entry.kind != "file"
                or _left_out(entry.name.rpartition("/")[2])
                or entry.name.endswith(".ipynb")
            ):
                continue
            try:
                content = base.read(entry.name, bytes_left)
            except OSError:  # a link too
                continue
            if max(len(content), FILE_AT_LEAST_BYTES) > bytes_left:
                return [TOO_MUCH]
            bytes_left -= max(len(content), FILE_AT_LEAST_BYTES)
            target = Path(folder) / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return [TOO_MUCH] if any(entry.kind == "deep" for entry in entries) else []


def _left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"
