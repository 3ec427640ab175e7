"""`manyhands check`: grade a lab for the learner."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from manyhands.checks import colour
from manyhands.checks import progress as memory
from manyhands.command_line import (
    Line,
    completed,
    refuse,
    seconds,
    sigterm_exits,
    unit_names_and_notebooks,
)
from manyhands.command_line import parser as command_parser
from manyhands.units import NotACloneError, find_root, is_number, units

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NotRequired

    from manyhands.grading.compare import Shown
    from manyhands.grading.engine import Grade

DESCRIPTION = """Grade a lab: your own copy in work/, or the notebook that you name. Your file is only read, never changed.
The checks run on a fresh kernel with a hidden seed, in a sandbox if one is available. On an attendee's server, which has no
solutions, the seed is the public one, and the room is the sandbox. Exit code 0 means full marks."""
NO_LAB = "There is no lab {word!r}. There are: {known}."
PLANNED = "Unit {number}, {title}, does not have a lab yet. There are: {known}."
NO_FILE = "There is no file {path}."
WHICH = "{path} is not the name of a lab. Say which lab it is, for example with --lab 06."
ANNOUNCED = "\nTo the class: {text}"
NOT_COPIED = (
    "You have no copy of this lab in work/ yet (`make lab` makes it). Therefore the lab is graded "
    "as it was released."
)


class Against(TypedDict):
    """What a submission is compared with: arguments of `engine.grade`."""

    solution_path: Path
    seed: NotRequired[int]
    wanted: NotRequired[Shown]


class UnknownLabError(Exception):
    """What was asked for is not there; the message says what is."""


def labs(root: str | Path) -> list[str]:
    """The names of all labs that have a solution.

    Where there are no solutions (an attendee's server), those of all that were released.
    """
    folder = Path(root) / ("solutions" if (Path(root) / "solutions").is_dir() else "labs")
    return sorted(
        path.parent.name for path in folder.glob("*/*.ipynb") if path.stem == path.parent.name
    )


def unit_named(word: str, root: str | Path) -> str:
    """`06`, `6`, `06_ddp`, `labs/06_ddp` -> `06_ddp`."""
    known, name = labs(root), Path(word).name
    for unit in known:
        if unit == name or is_number(name, unit[:2]):
            return unit
    coming = next(
        (
            unit
            for unit in units(root)
            if unit.planned and (unit.name == name or is_number(name, unit.number))
        ),
        None,
    )
    text = (
        PLANNED.format(number=coming.number, title=coming.title, known=", ".join(known))
        if coming
        else NO_LAB.format(word=word, known=", ".join(known) or "none yet")
    )
    raise UnknownLabError(text)


def find(word: str, root: str | Path, lab: str | None = None) -> tuple[str, Path, str]:
    """(unit, path of the submission, note) for what the learner typed."""
    path = Path(word)
    if path.suffix == ".ipynb":
        if not path.is_file():
            raise UnknownLabError(NO_FILE.format(path=path))
        known = labs(root)
        guess = next(
            (
                name
                for name in (path.stem.split(".")[0], path.resolve().parent.name)
                if name in known
            ),
            None,
        )
        if lab:
            return unit_named(lab, root), path, ""
        if not guess:
            raise UnknownLabError(WHICH.format(path=path))
        return guess, path, ""
    unit = unit_named(word, root)
    own = Path(root) / "work" / unit / f"{unit}.ipynb"
    if own.is_file():
        return unit, own, ""
    return unit, Path(root) / "labs" / unit / f"{unit}.ipynb", NOT_COPIED


class Progress(Line):
    """Says which cell runs: in one line on a terminal, once per notebook elsewhere."""

    last: str | None = None

    def __call__(self, what: str, done: int, of: int) -> None:
        """Show that a cell begins: the one of number `done`, counted from 0, of `of` cells."""
        self.show(f"{what}: cell {min(done + 1, of)} of {of}")
        if not self.live and what != self.last:
            self.say(f"{what}: {of} cells ...")
        self.last = what

    def say(self, line: str, stays: bool = False) -> None:
        """Show a line in the place of what was said before, on a terminal.

        With `stays`, it is not replaced itself.
        """
        self.show(line)
        if stays or not self.live:
            self.stream.write("\n" if self.live else f"{line}\n")
            self.stream.flush()
            self.width = 0


def parser() -> argparse.ArgumentParser:
    """The parser of the arguments of `manyhands check`."""
    made = command_parser(
        "check", DESCRIPTION, ["06", "06 07", "work/06_ddp/06_ddp.ipynb", "my_copy.ipynb --lab 06"]
    )
    made.add_argument(
        "lab_or_notebook", nargs="+", help="06, 06_ddp, labs/06_ddp, or the path of a notebook"
    ).completer = unit_names_and_notebooks  # type: ignore[attr-defined]  # argcomplete looks for it
    made.add_argument(
        "--lab", help="the lab that the notebook belongs to, if its name does not show it"
    )
    made.add_argument(
        "--no-sandbox",
        action="store_true",
        help="run as an ordinary process, even if a sandbox is available",
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
        help="time limit of the whole notebook in seconds",
    )
    made.add_argument("--json", action="store_true", help="print the grade as JSON")
    made.add_argument(
        "--verbose", action="store_true", help="if no sandbox is available, also say why"
    )
    return made


@sigterm_exits()
def main(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands check` with these arguments, and return its exit code."""
    arguments = completed(parser()).parse_args(argv)
    try:
        root = find_root()
        return max([_one(word, root, arguments) for word in arguments.lab_or_notebook])
    except (UnknownLabError, NotACloneError) as problem:
        return refuse("check", problem)
    except KeyboardInterrupt:
        print("\nStopped; nothing was graded.", file=sys.stderr)
        return 130


def _one(word: str, root: Path, arguments: argparse.Namespace) -> int:
    unit, submission, note = find(word, root, arguments.lab)
    progress = Progress(sys.stderr)
    progress.show(f"{unit}: loading the grader ...")
    from manyhands.grading import engine, grade_report
    from manyhands.grading.hub_client import check_slot
    from manyhands.grading.store import public_references
    from manyhands.isolation import container
    from manyhands.isolation.kernel_limits import Limits

    limits = {"cell_s": arguments.cell_timeout, "total_s": arguments.timeout}
    try:
        against = _against(root, unit)
        # nothing that the work must not see is there, and the person's room has its own limits
        own_server = "wanted" in against
        grade = engine.grade(
            submission,
            **against,
            progress=progress,
            slot=check_slot.hold(progress.say),
            sandboxed=False if arguments.no_sandbox or own_server else None,
            limits=Limits(**{name: value for name, value in limits.items() if value}),
        )
    except (
        engine.SolutionFailsError,
        container.NotStartedError,
        public_references.NoReferenceError,
        check_slot.RefusedError,
    ) as problem:
        print(problem, file=sys.stderr)
        return 3
    finally:
        progress.clear()
    if own_server and grade.sandbox:
        grade.sandbox = "on your own server"
    if note:
        grade.notes.insert(0, note)
    remember(submission, unit, grade, root)
    text = "\n".join(
        colour.colour_lines(grade_report.as_text(grade, arguments.verbose).split("\n"), sys.stdout)
    )
    print(json.dumps(grade_report.as_data(grade)) if arguments.json else text, flush=True)
    if (announcement := report_to_board(submission, unit, grade)) and not arguments.json:
        print(ANNOUNCED.format(text=announcement), flush=True)
    return 0 if grade.full else 1


def _against(root: Path, unit: str) -> Against:
    """What to grade against.

    That is the solution under a hidden seed, or, where it is not there, the lab and its public
    reference.
    """
    from manyhands.grading.store import public_references

    solution = root / "solutions" / unit / f"{unit}.ipynb"
    if solution.is_file():
        return {"solution_path": solution}
    return {
        "solution_path": root / "labs" / unit / f"{unit}.ipynb",
        "seed": public_references.PUBLIC_SEED,
        "wanted": public_references.load(root, unit),
    }


def report_to_board(submission: Path, unit: str, grade: Grade) -> str:
    """Report to the class board if the notebook is the learner's own copy.

    Returns the class's announcement, or "", also where there is no board.
    """
    from manyhands.grading.hub_client import class_board

    work = memory.work_folder(Path(submission).parent)
    return class_board.report(grade, len(memory.hints(work, unit))) if work else ""


def remember(submission: Path, unit: str, grade: Grade, root: str | Path) -> None:
    """Note the result if the notebook is one of the learner's own copies.

    The start page is renewed with it.
    """
    from manyhands.learner import start_page

    work = memory.work_folder(Path(submission).parent)
    if work and not grade.verdict:
        memory.add_result(work, unit, grade.points, grade.max)
        if (work / start_page.NAME).is_file() and work == Path(root) / "work":
            start_page.write(root)
