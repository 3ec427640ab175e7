"""`manyhands clinic train.py`: one page about a team's own training script."""

import sys
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from manyhands.clinic.clinic_limits import CLINIC_RANKS, STEPS, TIMEOUT_S
from manyhands.clinic.page import MADE_BY
from manyhands.cluster.launch import launch_line
from manyhands.command_line import completed, no_output_file, part, refuse, seconds, sigterm_exits
from manyhands.command_line import parser as command_parser

DESCRIPTION = """Run your own training script for a few steps, with observers in place, and write a page about it: is it right, does it hang,
will it run on GPUs, what does it cost? The script is one for torchrun (DDP, FSDP2, Lightning, Accelerate, all_reduce by hand) or horovodrun. Neither it nor
its repository is changed: it runs in a copy. Exit code 0: nothing found; 1: a mistake found; 2: the script failed; 3: not determined."""
STOPPED = "\nStopped; all processes of the script have ended."


def parser() -> ArgumentParser:
    """Make the parser of `manyhands clinic`."""
    made = command_parser(
        "clinic",
        DESCRIPTION,
        [
            "train.py --ranks 4",
            "train.py --ranks 2 -- --epochs 1 --lr 0.1",
            "torchrun --nproc-per-node 2 train.py --epochs 1",
            "train.py --with horovodrun",
        ],
    )
    launch_line.add_options(made, CLINIC_RANKS)
    made.add_argument(
        "--to-end",
        action="store_true",
        help="watch the script until it ends, and not only for a few steps",
    )
    made.add_argument(
        "--patience",
        type=seconds,
        metavar="S",
        help="report a hang if all ranks wait for this many seconds (10, with GPUs 30)",
    )
    made.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT_S,
        metavar="S",
        help=f"time limit of the whole run in seconds ({TIMEOUT_S:g})",
    )
    made.add_argument(
        "--output",
        type=Path,
        default=Path("clinic.html"),
        metavar="FILE",
        help="the file for the page (clinic.html)",
    )
    made.add_argument("--open", action="store_true", help="open the page in the browser")
    return made


@sigterm_exits()
def main(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands clinic`; returns its exit code (see `exit_codes`)."""
    try:
        arguments = launch_line.parsed(
            completed(parser()), sys.argv[1:] if argv is None else argv, "clinic", CLINIC_RANKS
        )
    except ValueError as error:
        return refuse("clinic", error)
    if problem := no_output_file(arguments.output, MADE_BY):
        return refuse("clinic", problem)
    try:
        return _look(arguments)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        return 130


def _look(arguments: Namespace) -> int:
    from manyhands.clinic.conclude import conclude
    from manyhands.clinic.page import as_html
    from manyhands.clinic.plain_page import as_text
    from manyhands.clinic.visit import may_rehearse, rehearsed, visit
    from manyhands.cluster.launch.run_script import LaunchError

    line, stand_in = arguments.line, not arguments.as_it_is
    launch_line.warn(line)
    try:
        with part("1 of 2: to its end" if arguments.to_end else f"1 of 2: {STEPS} steps"):
            seen = visit(
                line.script,
                line.arguments,
                line.ranks,
                line.launcher,
                arguments.to_end,
                arguments.patience,
                arguments.timeout,
                stand_in,
                line.nodes,
                line.env,
            )
        if may_rehearse(seen):
            with part("2 of 2: rehearsal"):
                rehearsed(seen, line.script, arguments.timeout, stand_in)
    except LaunchError as problem:
        return refuse("clinic", problem)
    done = conclude(seen, arguments.to_end, arguments.timeout)
    print(as_text(done))
    arguments.output.write_text(as_html(done), encoding="utf-8")
    print(f"\nThe page: {arguments.output}")
    if arguments.open:
        webbrowser.open(arguments.output.resolve().as_uri())
    return done.code
