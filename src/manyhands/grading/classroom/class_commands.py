"""`manyhands release | collect | grade | feedback | export`: a class's labs, for the instructor."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyhands.command_line import (
    completed,
    no_output_file,
    parser,
    printable,
    seconds,
    sigterm_exits,
    unit_names,
    whole,
    working,
)
from manyhands.grading import grade_report
from manyhands.grading.check_command import UnknownLabError, labs, unit_named
from manyhands.units import NotACloneError, find_root

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from manyhands.grading.nbgrader.class_settings import Classroom

RELEASE = (
    "Put labs into nbgrader's exchange, from which attendees fetch them (on a hub, in JupyterLab: "
    "Nbgrader, Assignment List)."
)
COLLECT = (
    "Collect what attendees have handed in. What was collected before is kept in "
    "classroom/received/."
)
GRADE = """Grade what was collected and has no grade yet, in a sandbox each, on all cores. You can stop it at any time, and the next
run continues where it stopped. If a grade changes, the old one is kept as well. Marks given by hand in formgrader are kept."""
FEEDBACK = (
    "Write and release a feedback page for each attendee (classroom/feedback/), so that they can "
    "fetch it."
)
EXPORT = "Write all grades as CSV, with a row for each attendee and lab, and a row for each check."
STOPPED = "Stopped. All grades so far are kept, and the same command continues with the rest."


def _parser(
    name: str,
    description: str,
    examples: list[str],
    many: str = "one or more labs: 02, 02_mirrored_strategy",
) -> argparse.ArgumentParser:
    made = parser(name, description, examples)
    made.add_argument(
        "lab", nargs="*" if name == "export" else "+", help=many
    ).completer = unit_names  # type: ignore[attr-defined]  # argcomplete looks for it
    return made


def _with_runs(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    made.add_argument(
        "--student",
        action="append",
        default=[],
        metavar="NAME",
        help="only this attendee (can be given again)",
    )
    made.add_argument(
        "--jobs", type=whole, default=0, metavar="N", help="number of cores to use (all)"
    )
    made.add_argument(
        "--cell-timeout",
        type=seconds,
        default=None,
        metavar="S",
        help="time limit of one cell in seconds",
    )
    made.add_argument(
        "--timeout",
        type=seconds,
        default=None,
        metavar="S",
        help="time limit of one whole notebook in seconds",
    )
    return made


def release(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands release` with these arguments, and return its exit code."""
    made = _parser("release", RELEASE, ["02", '02 --due "2026-12-01 18:00 +0900"', "02 --again"])
    made.add_argument(
        "--due",
        metavar="TIME",
        help=(
            'when it is due: "2026-12-01 18:00" (this machine\'s time), "2026-12-01 18:00 +0900"; '
            "attendees of a hub see it on their page Start_Here"
        ),
    )
    made.add_argument(
        "--again", action="store_true", help="replace the released lab by a changed one"
    )
    return _each(completed(made).parse_args(argv), _release)


def _release(classroom: Classroom, unit: str, arguments: argparse.Namespace) -> int:
    from manyhands.grading.classroom import steps

    with working(f"{unit}: releasing the lab"):
        new = steps.release(classroom, unit, arguments.due, arguments.again)
    print(f"{unit}: {'released' if new else 'was released before'}.")
    return 0


def collect(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands collect` with these arguments, and return its exit code."""
    made = _parser("collect", COLLECT, ["02", "02 --student alice"])
    made.add_argument("--student", default="", metavar="NAME", help="only this attendee")
    return _each(completed(made).parse_args(argv), _collect)


def _collect(classroom: Classroom, unit: str, arguments: argparse.Namespace) -> int:
    from manyhands.grading.classroom import steps

    with working(f"{unit}: collecting what was handed in") as line:
        taken = steps.collect(
            classroom,
            unit,
            arguments.student,
            progress=lambda done, of: line.show(f"{unit}: {done} of {of} folders collected"),
        )
    print(
        f"{unit}: {len(taken['new'])} new, {len(taken['again'])} handed in again, "
        f"{len(taken['same'])} as before."
    )
    for sentence in [*taken["dated"], *taken["refused"]]:
        print(f"  {sentence}")
    return 1 if taken["refused"] else 0


def grade(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands grade` with these arguments, and return its exit code."""
    made = _with_runs(_parser("grade", GRADE, ["02", "02 --student alice --again"]))
    made.add_argument(
        "--again", action="store_true", help="grade again even what already has a grade"
    )
    return _each(completed(made).parse_args(argv), _grade, loads_nbgrader=False)


def _grade(classroom: Classroom, unit: str, arguments: argparse.Namespace) -> int:
    from manyhands.grading.classroom import grading

    with _bar(unit) as progress:
        outcome = grading.grade(
            classroom,
            unit,
            arguments.student,
            arguments.again,
            progress=progress,
            **_limits(arguments),
        )
    print(f"{unit}: {len(outcome.graded)} graded, {len(outcome.kept)} already had a grade.")
    grades = grading.journal_of(classroom, unit)
    for student in outcome.graded:
        entry = grades.current(student)
        assert entry is not None  # it was kept just now
        given = grade_report.from_data(entry["grade"])
        mark = f"{grade_report.number(given.points)} of {grade_report.number(given.max)}"
        print(f"  {student:<20} {mark:>10}" + (f"  {given.verdict}" if given.verdict else ""))
    for student, (before, now, reason) in outcome.changed.items():
        print(
            f"  {student}: {grade_report.number(before)} points before, {grade_report.number(now)} "
            f"now: {reason}"
        )
    for student, why in outcome.failed.items():
        print(f"  {student}: NOT GRADED, {why}", file=sys.stderr)
    for student, why in outcome.not_shown.items():
        print(f"  {student}: graded, but NOT IN THE GRADEBOOK, {why}", file=sys.stderr)
    return 1 if outcome.failed or outcome.not_shown else 0


def feedback(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands feedback` with these arguments, and return its exit code."""
    made = _with_runs(_parser("feedback", FEEDBACK, ["02", "02 --hold-back"]))
    made.add_argument(
        "--hold-back", action="store_true", help="write the pages, but do not release them"
    )
    return _each(completed(made).parse_args(argv), _feedback)


def _feedback(classroom: Classroom, unit: str, arguments: argparse.Namespace) -> int:
    from manyhands.grading.classroom import steps

    with _bar(unit) as progress:
        pages, kept_back, failed = steps.give_feedback(
            classroom,
            unit,
            arguments.student,
            arguments.hold_back,
            progress=progress,
            **_limits(arguments),
        )
    released = 0 if arguments.hold_back else len(pages) - len(kept_back)
    written = f"{len(pages)} page{'' if len(pages) == 1 else 's'}"
    print(f"{unit}: {written} in {classroom.folder / 'feedback'}, {released} of them released.")
    for student, why in [*kept_back.items(), *failed.items()]:
        print(f"  {student}: {why}")
    return 1 if failed else 0


def export(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands export` with these arguments, and return its exit code."""
    made = _parser(
        "export",
        EXPORT,
        ["-o grades.csv", "02 06"],
        many="labs: 02, 02_mirrored_strategy (all that have grades)",
    )
    made.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file (default: print to the screen)"
    )
    return _each(completed(made).parse_args(argv), _export, together=True)


def _export(classroom: Classroom, units: list[str], arguments: argparse.Namespace) -> int:
    from manyhands.grading.classroom import steps
    from manyhands.shared.atomic import write_file

    if arguments.output is not None and (
        problem := no_output_file(arguments.output, ",".join(steps.HEAD[:4]))
    ):
        return _refused(problem)
    if not units:
        units = [
            unit for unit in labs(classroom.root) if (classroom.folder / "grades" / unit).is_dir()
        ]
    if arguments.output is None:
        rows, failed = steps.export(classroom, units, sys.stdout)
    else:
        table = io.StringIO(newline="")
        with working(f"reading the grades of {len(units)} labs"):
            rows, failed = steps.export(classroom, units, table)
        write_file(Path(arguments.output), table.getvalue(), mode=0o644)
    for whose, why in failed.items():
        print(f"{whose}: NOT IN THE TABLE, {why}", file=sys.stderr)
    if arguments.output:
        print(f"{rows} rows in {arguments.output}")
    return 1 if failed else 0


def _limits(arguments: argparse.Namespace) -> dict[str, Any]:
    from manyhands.isolation.kernel_limits import Limits

    given = {"cell_s": arguments.cell_timeout, "total_s": arguments.timeout}
    return {
        "jobs": arguments.jobs,
        "limits": Limits(**{name: value for name, value in given.items() if value}),
    }


@contextlib.contextmanager
def _bar(unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on the terminal, from the beginning on; as a function that a batch calls."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no thread: processes are forked from here
    with tqdm(desc=unit, unit="lab", disable=not sys.stderr.isatty(), leave=False) as bar:

        def progress(done: int, of: int, student: str) -> None:
            bar.total, bar.n = of, done
            bar.set_postfix_str(student, refresh=False)
            bar.refresh()

        yield progress


@sigterm_exits()
def _each(
    arguments: argparse.Namespace,
    work: Callable[[Classroom, Any, argparse.Namespace], int],
    together: bool = False,
    loads_nbgrader: bool = True,
) -> int:
    """Do the work for each lab that was named; the exit code."""
    try:
        root = find_root()
        units = [unit_named(word, root) for word in arguments.lab]
        from manyhands.grading.nbgrader.class_settings import Classroom

        with (
            working("loading the gradebook's program")
            if loads_nbgrader
            else contextlib.nullcontext()
        ):
            if loads_nbgrader:
                from manyhands.grading.classroom import steps  # noqa: F401 (it takes seconds)
            classroom = Classroom(root)
        if together:
            return work(classroom, units, arguments)
        return max([work(classroom, unit, arguments) for unit in units])
    except KeyboardInterrupt:
        print(f"\n{STOPPED}", file=sys.stderr)
        return 130
    except (UnknownLabError, NotACloneError) as problem:  # known without what takes seconds to load
        return _refused(problem)
    except _refusals() as problem:
        return _refused(problem)


def _refused(problem: object) -> int:
    print(f"manyhands: {printable(problem)}", file=sys.stderr)
    return 2


def _refusals() -> tuple[type[Exception], ...]:
    """The errors whose message tells the instructor what to do."""
    from manyhands.grading import engine
    from manyhands.grading.classroom import batch, steps
    from manyhands.grading.nbgrader import gradebook
    from manyhands.grading.store import grade_journal

    return (
        batch.NoSandboxError,
        steps.RefusedError,
        engine.SolutionFailsError,
        gradebook.GradebookError,
        grade_journal.BusyError,
    )
