"""`manyhands clinic train.py`: one page about a team's own training script."""

import sys
import webbrowser
from pathlib import Path

from manyhands.clinic.page import MADE_BY
from manyhands.command_line import (
    completed, no_output_file, no_script, python_files, refuse, scripts_own, seconds, sigterm_exits
)
from manyhands.command_line import parser as command_parser

DESCRIPTION = """Run your own training script for a few steps, with observers in place, and write one page about it: is it right, does it hang,
will it run on GPUs, what does it cost? The script is one for torchrun (DDP, FSDP2, Lightning, Accelerate, all_reduce by hand) or horovodrun. Neither it nor
its folder is changed: it runs in a copy of the folder. Exit code 0: nothing found; 1: a mistake found; 2: the script fails; 3: not determined."""  # noqa: E501
STOPPED = "\nStopped; all processes of the script have ended."


def parser():
    made = command_parser("clinic", DESCRIPTION, ["train.py --ranks 4", "train.py --ranks 2 -- --epochs 1 --lr 0.1",
                                                  "train.py --with horovodrun"])
    made.add_argument("script", help="your training script").completer = python_files
    made.add_argument("arguments", nargs="*", default=[], help="its own arguments, behind --")
    made.add_argument("--ranks", type=int, default=4, metavar="N", help="so many processes (4)")
    made.add_argument("--with", dest="launcher", choices=["torchrun", "horovodrun", "mpirun"], default="torchrun",
                      help="what starts them (torchrun)")
    made.add_argument("--to-end", action="store_true", help="watch the script to its own end, not for a few steps only")
    made.add_argument("--patience", type=seconds, metavar="S",
                      help="all ranks waiting for so many seconds is a hang (10, with GPUs 30)")
    made.add_argument("--timeout", type=seconds, default=300, metavar="S", help="seconds for the whole run (300)")
    made.add_argument("--output", type=Path, default=Path("clinic.html"), metavar="FILE", help="the page (clinic.html)")
    made.add_argument("--open", action="store_true", help="show the page in the browser")
    return made


@sigterm_exits()
def main(argv=None):
    mine, own = scripts_own(sys.argv[1:] if argv is None else argv)
    arguments = completed(parser()).parse_args(mine)
    arguments.arguments += own
    if problem := no_script(arguments.script) or no_output_file(arguments.output, MADE_BY):
        return refuse("clinic", problem)
    if arguments.ranks < 1:
        return refuse("clinic", "--ranks must be 1 or more.")
    try:
        return _look(arguments)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        return 130


def _look(arguments):
    from manyhands.clinic.conclude import conclude
    from manyhands.clinic.page import as_html
    from manyhands.clinic.plain_page import as_text
    from manyhands.clinic.visit import rehearsed, visit
    from manyhands.cluster.launch.run_script import LaunchError

    try:
        seen = visit(arguments.script, arguments.arguments, arguments.ranks, arguments.launcher, arguments.to_end,
                     arguments.patience, arguments.timeout)
        rehearsed(seen, arguments.script, arguments.timeout)
    except LaunchError as problem:
        return refuse("clinic", problem)
    done = conclude(seen, arguments.to_end, arguments.timeout)
    print(as_text(done))
    arguments.output.write_text(as_html(done), encoding="utf-8")
    print(f"\nThe page: {arguments.output}")
    if arguments.open:
        webbrowser.open(arguments.output.resolve().as_uri())
    return done.code
