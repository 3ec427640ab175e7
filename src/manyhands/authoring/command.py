"""The commands of authors: `manyhands build`, `adopt`, `validate` and `slides`."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from manyhands.authoring import BuildError, UnknownNameError, layout
from manyhands.command_line import Line, completed, parser, printable, unit_names, whole, working
from manyhands.units import NotACloneError, find_root

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path


def main(argv: Sequence[str] | None) -> int:
    """Run `manyhands build` with these arguments, and return its exit code."""
    made = parser(
        "build",
        "Build notebooks, solutions and labs from their sources.",
        ["06", "02 06 --remeasure", "--check --no-execute"],
    )
    made.add_argument(
        "units", nargs="*", metavar="UNIT", help="06, 06_ddp or a path; all units if none is named"
    ).completer = unit_names  # type: ignore[attr-defined]  # argcomplete looks for it
    made.add_argument(
        "--no-execute",
        action="store_true",
        help="run nothing, and keep the stored outputs of unchanged cells",
    )
    made.add_argument(
        "--check", action="store_true", help="write nothing, but compare with the committed files"
    )
    made.add_argument(
        "--remeasure",
        action="store_true",
        help="take new outputs for cells that are tagged measured",
    )
    options = completed(made).parse_args(argv)
    return _telling(_check if options.check else _build, options)


def adopt(argv: Sequence[str] | None) -> int:
    """Run `manyhands adopt` with these arguments, and return its exit code."""
    made = parser(
        "adopt",
        "Write an edited notebook back to its source.",
        ["notebooks/06_ddp.ipynb", "solutions/06_ddp/06_ddp.ipynb"],
    )
    made.add_argument(
        "paths",
        nargs="+",
        metavar="NOTEBOOK",
        help="notebooks/NN_topic.ipynb or solutions/NN_topic/NN_topic.ipynb",
    )
    return _telling(_adopt, completed(made).parse_args(argv))


def validate(argv: Sequence[str] | None) -> int:
    """Run `manyhands validate` with these arguments, and return its exit code."""
    made = parser(
        "validate",
        "Run notebooks and compare every output (nbval).",
        ["06", "notebooks/06_ddp.ipynb", "--jobs 1"],
    )
    made.add_argument(
        "units", nargs="*", metavar="UNIT", help="06, 06_ddp or a path; all units if none is named"
    ).completer = unit_names  # type: ignore[attr-defined]  # argcomplete looks for it
    made.add_argument(
        "--jobs",
        type=whole,
        help=(
            "number of notebooks that run at the same time (default: one more than there are cores,"
            " 8 at most)"
        ),
    )
    return _telling(_validate, completed(made).parse_args(argv))


def slides(argv: Sequence[str] | None) -> int:
    """Run `manyhands slides` with these arguments, and return its exit code."""
    made = parser(
        "slides",
        "Build decks as HTML and PDF: slides/NN_topic.md -> slides/built/.",
        ["06", "02 06"],
    )
    made.add_argument(
        "decks", nargs="*", metavar="DECK", help="06 or 06_ddp; all decks if none is named"
    ).completer = unit_names  # type: ignore[attr-defined]  # argcomplete looks for it
    return _telling(_slides, completed(made).parse_args(argv))


def _telling(work: Callable[[Path, argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run one command, and return its exit code.

    What the author has to mend goes to stderr, and 1 is returned; 2 where what was typed names
    nothing.
    """
    try:
        return work(find_root(), options)
    except UnknownNameError as error:
        print(f"\n{printable(error)}", file=sys.stderr)
        return 2
    except (BuildError, NotACloneError) as error:
        print(f"\n{printable(error)}", file=sys.stderr)
        return 1


def _build(root: Path, options: argparse.Namespace) -> int:
    pieces, line = layout.pieces(root, options.units), Line(sys.stdout)
    for piece in pieces:
        name, begun = piece.short(piece.notebook), time.monotonic()
        line.show(f"{name} ...") if line.live else print(f"{name} ...", end=" ", flush=True)
        from manyhands.authoring import make

        def progress(cell: int, of: int, name: str = name) -> None:
            line.show(f"{name}: cell {cell} of {of} ...")

        try:
            changed = make.build(
                piece,
                run=not options.no_execute,
                remeasure=options.remeasure,
                progress=progress,
            )
        finally:
            line.clear()
        print(f"{name} ... " if line.live else "", end="")
        print(f"{time.monotonic() - begun:.1f} s,", "changed: " if changed else "unchanged", end="")
        print(", ".join(piece.short(path) for path in changed))
    return 0


def _check(root: Path, options: argparse.Namespace) -> int:
    with working("comparing what is built with its sources"):
        from manyhands.authoring import up_to_date
        from manyhands.authoring.slides import drifts as slide_drifts

        differences = up_to_date.drifts(root, options.units, run=not options.no_execute)
        differences += [] if options.units else slide_drifts(root)
    for drift in differences:
        print(drift, file=sys.stderr)
    if not differences:
        print("all that is built agrees with its sources")
    return 1 if differences else 0


def _adopt(root: Path, options: argparse.Namespace) -> int:
    from manyhands.authoring import adopt as back

    for path in options.paths:
        for line in back.adopt(root, path):
            print(line)
    return 0


def _validate(root: Path, options: argparse.Namespace) -> int:
    failed = 0
    notebooks = [piece.notebook for piece in layout.pieces(root, options.units)]
    line = Line(sys.stderr)
    line.show(f"0 of {len(notebooks)} notebooks done ...")
    from manyhands.authoring.validate import JOBS, Validation

    with Validation(notebooks, jobs=options.jobs or JOBS) as verdicts:
        for done, verdict in enumerate(verdicts, 1):
            line.clear()
            word = "PASS" if verdict.passed else "FAIL"
            print(
                f"{word}  {verdict.seconds:6.1f} s  {os.path.relpath(verdict.notebook, root)}",
                flush=True,
            )
            if not verdict.passed:
                failed += 1
                print(verdict.text, flush=True)
            if done < len(notebooks):
                line.show(f"{done} of {len(notebooks)} notebooks done ...")
    line.clear()
    return 1 if failed else 0


def _slides(root: Path, options: argparse.Namespace) -> int:
    from manyhands.authoring import slides as deck_maker

    with working("comparing decks with their sources") as line:
        made = deck_maker.build(root, options.decks, report=lambda text: line.show(f"{text} ..."))
    shown = [str(path.relative_to(root)) for path in made]
    for text in shown or ["all decks agree with their sources"]:
        print(text)
    return 0
