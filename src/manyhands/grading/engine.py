"""Grading one submission: pristine check cells, a hidden seed, a sandbox, and the comparison outside the kernel."""

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from manyhands.checks.hints import hints_of
from manyhands.checks.record import BLOCKED, FAIL
from manyhands.grading import notebooks, references, sandbox
from manyhands.grading.compare import Criterion, compare, printable, records
from manyhands.grading.kernel import Kernel, KernelEnded, Limits
from manyhands.grading.notebooks import NotGraded

NOT_RUN = "not run"
FOLDER_BYTES = 50 * 2**20
ENDED = {
    "total": "The notebook took more than {total_s:.0f} s in all. The check cells after that point were not run.",
    "cell": "A cell took more than {cell_s:.0f} s and could not be interrupted. The cells after it were not run.",
    "memory": "The notebook used more than {memory_gb:.1f} GB of memory. The cells after that point were not run.",
    "processes": "The notebook started more than {processes} processes. The cells after that point were not run.",
    "died": "The kernel ended while it ran a cell. The cells after it were not run.",
    "start": "The kernel did not start within {start_s:.0f} s.",
}


@dataclass
class Grade:
    """What a submission is worth, criterion by criterion."""

    unit: str
    criteria: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    verdict: str = ""  # why nothing could be graded, or empty
    sandbox: str = ""
    seconds: float = 0.0

    @property
    def points(self):
        return sum(criterion.earned for criterion in self.criteria)

    @property
    def max(self):
        """All points but those of blocked criteria."""
        return sum(criterion.points for criterion in self.criteria if criterion.status != BLOCKED)

    @property
    def full(self):
        return not self.verdict and self.max > 0 and all(criterion.status != FAIL for criterion in self.criteria)

    @property
    def hints(self):
        """The names of the hints that help with what failed."""
        failed = {criterion.check.removesuffix("-check") for criterion in self.criteria if criterion.status == FAIL}
        return [name for name in sorted(hints_of(self.unit[:2])) if name.split("-", 1)[-1] in failed]


class SolutionFails(RuntimeError):
    """The solution itself does not pass its checks on this machine."""


def grade(submission_path, solution_path, *, seed=None, sandboxed=None, limits=Limits(), progress=None, cache=True):
    """Grade a notebook against its solution; the file that was handed in is only read.

    seed: None draws a hidden one. sandboxed: None uses a sandbox if there is one, True insists, False does without.
    progress: called as `progress(what, done, of)` while cells run. Returns a `Grade`; raises `SolutionFails`.
    """
    started = time.monotonic()
    progress = progress or (lambda what, done, of: None)
    solution_path = Path(solution_path)
    result = Grade(solution_path.stem)
    solution = notebooks.read(solution_path)
    try:
        plan = notebooks.plan(notebooks.read(submission_path), solution)
    except NotGraded as problem:
        result.verdict = str(problem)
        result.criteria = _all_failed(solution)
        return result
    lack = sandbox.why_none()
    if sandboxed and lack:
        raise RuntimeError(f"there is no sandbox: {lack}")
    sandboxed = not lack if sandboxed is None else sandboxed
    result.sandbox = "in a sandbox" if sandboxed else "without a sandbox" + (f" ({lack})" if lack else "")
    seed = references.hidden_seed(solution_path, solution) if seed is None else seed
    wanted = reference(solution_path, solution, seed, limits=limits, progress=progress, cache=cache)
    result.notes += plan.notes
    with tempfile.TemporaryDirectory(prefix="mh-") as folder:
        result.notes += copy_beside(submission_path, folder)
        shown, notes = run(plan, folder, seed, sandboxed, limits, lambda done, of: progress("your notebook", done, of))
    result.notes += notes
    for name, cell in notebooks.checks_of(solution).items():
        result.criteria += compare(name, notebooks.points_of(cell), shown.get(name, []), wanted[name])
    result.seconds = time.monotonic() - started
    return result


def _all_failed(solution):
    return [Criterion(name, name, NOT_RUN, notebooks.points_of(cell), FAIL)
            for name, cell in notebooks.checks_of(solution).items()]


def reference(solution_path, solution, seed, *, limits=Limits(), progress=None, cache=True):
    """{grade_id: outputs} of the solution's check cells under this seed; run if it is not kept already."""
    name = references.key(solution_path, solution, seed)
    kept = references.load(name) if cache else None
    if kept is not None:
        return kept
    report = progress or (lambda what, done, of: None)
    with tempfile.TemporaryDirectory(prefix="mh-") as folder:
        copy_beside(solution_path, folder)
        plan = notebooks.plan_of_solution(solution)
        shown, notes = run(plan, folder, seed, False, limits, lambda done, of: report("the solution", done, of))
    _refuse_failures(solution, shown, notes)
    if cache:
        references.save(name, shown)
    return shown


def _refuse_failures(solution, shown, notes):
    problems = list(notes)
    for name in notebooks.checks_of(solution):
        outputs = shown.get(name)
        found = records(outputs or [])
        if outputs is None or len(found) > 1:
            problems.append(f"{name}: {len(found)} records")
        for record in found:
            problems += [f"{name}: {one['name']}: {one['detail']}" for one in record["criteria"] if one["status"] == FAIL]
    if problems:
        raise SolutionFails("The solution does not pass its own checks on this machine:\n  " + "\n  ".join(problems))


def run(plan, folder, seed, sandboxed, limits, progress):
    """Run a plan in a fresh kernel: ({grade_id: outputs of the check cell}, notes about what went wrong)."""
    shown, notes, errors = {}, [], []
    step = None
    try:
        with Kernel(folder, seed, sandboxed, limits) as kernel:
            for number, step in enumerate(plan.steps):
                progress(number, len(plan.steps))
                ran = kernel.run(step.source)
                if step.check:
                    shown[step.check] = ran.outputs
                if ran.interrupted:
                    notes.append(f"{step.where}: it took more than {limits.cell_s:.0f} s and was interrupted.")
                elif ran.error and not step.may_raise:
                    errors.append(printable(f"{step.where}: {ran.error}")[:400])
            progress(len(plan.steps), len(plan.steps))
    except KernelEnded as end:
        facts = {**vars(limits), "memory_gb": limits.memory_bytes / 2**30}
        notes.append((f"{step.where}: " if step else "") + ENDED[end.reason].format(**facts))
    return shown, notes + errors[:5]


def copy_beside(notebook_path, folder):
    """Copy what lies beside a notebook (scripts that it launches), without notebooks and hidden files; notes if too much."""
    total = 0
    base = Path(notebook_path).parent
    for path in sorted(base.rglob("*")):
        place = path.relative_to(base)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in place.parts)
        if hidden or path.is_symlink() or not path.is_file() or path.suffix == ".ipynb":
            continue
        total += path.stat().st_size
        if total > FOLDER_BYTES:
            return [f"The folder holds more than {FOLDER_BYTES // 2**20} MB: not all of its files were taken along."]
        (Path(folder) / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, Path(folder) / place)
    return []
