"""`manyhands predict`: how long a step of your own script takes on a machine that you lack.

For example `manyhands predict train.py --to 8,64,1024 --machine dgx-h100`.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.clinic import predict_messages
from manyhands.clinic.clinic_limits import MOST_RANKS, PREDICT_RANKS, TIMEOUT_S
from manyhands.clinic.exit_codes import NOT_DETERMINED, SCRIPT_FAILED
from manyhands.clinic.global_batch import PER_RANK, describe_batch, most_ranks, parse_batch
from manyhands.cluster.launch import launch_line
from manyhands.command_line import completed, no_output_file, part, refuse, seconds, sigterm_exits
from manyhands.command_line import parser as command_parser
from manyhands.gpu_stand_in.substitution_messages import describe_substitutions

if TYPE_CHECKING:
    from manyhands.clinic.scale import NothingMeasuredError
    from manyhands.clinic.visit import Visit
    from manyhands.simulate.machines import Kind

DESCRIPTION = """Run your own training script for some steps, on one rank and on several, and predict how long a step takes on many ranks of a different machine:
a table, a picture, and the three largest costs. Neither the script nor its folder is changed. Exit code 0: predicted; 2: the script failed, or an
option is wrong; 3: nothing could be predicted, because there were no steps, no messages or no core to measure with."""
STOPPED = "\nStopped; all processes of the script have ended."
MADE_BY = "manyhands predict"


def parser() -> argparse.ArgumentParser:
    """Make the parser of `manyhands predict`."""
    made = command_parser(
        "predict",
        DESCRIPTION,
        ["train.py --to 8,64,1024 --machine dgx-h100", "train.py --times-as-fast 40 -- --epochs 1"],
    )
    launch_line.add_options(made, PREDICT_RANKS)
    made.add_argument(
        "--to",
        default="8,64,1024",
        metavar="P,P,...",
        help="numbers of ranks to predict (8,64,1024)",
    )
    made.add_argument(
        "--machine",
        default="dgx-h100",
        metavar="NAME",
        help="the machine, by its published numbers, or a file with them, my.toml (dgx-h100)",
    )
    made.add_argument(
        "--reached",
        type=float,
        default=0.7,
        metavar="PART",
        help="the fraction of its links' published rates that messages reach (0.7)",
    )
    made.add_argument(
        "--times-as-fast",
        type=float,
        default=1.0,
        metavar="X",
        help="a rank there computes X times as fast as a rank here (1)",
    )
    made.add_argument(
        "--global-batch",
        type=parse_batch,
        default="auto",
        metavar="CHOICE",
        help=(
            "fixed: the ranks divide the same rows among them; per-rank: each has as many rows as "
            "here; a number: the ranks divide this many rows; auto: as the script does here (auto)"
        ),
    )
    made.add_argument(
        "--all-reduce",
        choices=["ring", "tree", "two-level", "auto"],
        default="auto",
        help=(
            "the algorithm for sums; auto: the fastest that the machine can do, for each message "
            "(auto)"
        ),
    )
    made.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT_S,
        metavar="S",
        help=f"time limit of each of the two runs in seconds ({TIMEOUT_S:g})",
    )
    made.add_argument(
        "--output",
        type=Path,
        default=Path("prediction.svg"),
        metavar="FILE",
        help="the file for the picture (prediction.svg)",
    )
    return made


@sigterm_exits()
def main(argv: Sequence[str] | None = None) -> int:
    """Run `manyhands predict`; returns its exit code (see `exit_codes`)."""
    try:
        arguments = launch_line.parsed(
            completed(parser()), sys.argv[1:] if argv is None else argv, "predict", PREDICT_RANKS
        )
    except ValueError as problem:
        return refuse("predict", problem)
    launch_line.warn(arguments.line)
    try:
        return _predict(arguments)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        return 130


def _predict(arguments: argparse.Namespace) -> int:
    from manyhands.clinic import scale
    from manyhands.clinic.clinic_messages import REMARKS
    from manyhands.clinic.conclude import describe_left_out
    from manyhands.cluster.launch.run_script import LaunchError
    from manyhands.plots.scaling import efficiency

    try:
        ranks, kind = _parse_ranks(arguments), _load_machine(arguments)
        with part("1 of 2: one rank"):
            alone, needs_ranks = _run(arguments, 1), ""
        try:
            measured_on = scale.timed_steps(alone)
        except scale.NothingMeasuredError as problem:
            if alone.timed_out:
                raise
            needs_ranks = predict_messages.NEEDS_RANKS.format(why=problem, ranks=arguments.ranks)
        with part(f"2 of 2: {arguments.ranks} ranks"):
            together = _run(arguments, arguments.ranks)
        if needs_ranks:
            alone, measured_on = together, scale.timed_steps(together)
        usable, of_cores = predict_messages.judge_core_time(measured_on)
        if not usable:
            raise scale.NothingMeasuredError(of_cores, alone.ranks)
        step = scale.measured(alone, together)
        of_rows = needs_ranks + describe_batch(step, arguments.global_batch)
        batch = (
            step.batch() or PER_RANK if arguments.global_batch == "auto" else arguments.global_batch
        )
        most = most_ranks(step, batch) or MOST_RANKS
        if ranks[0] > most:
            raise ValueError(
                f"{of_rows} Therefore {ranks[0]:,} ranks would get less than one row each. Give "
                "smaller numbers with --to, or a larger --global-batch."
            )
    except scale.NothingMeasuredError as problem:
        refuse("predict", f"{problem}{_clinic_line(arguments, problem)}")
        return SCRIPT_FAILED if problem.failed else NOT_DETERMINED
    except (ValueError, LaunchError) as problem:
        return refuse("predict", problem)
    print("\n".join(filter(None, [predict_messages.describe_step(step), of_rows, of_cores])))
    if together.substituted:
        print(describe_substitutions(together.substituted))
    if together.left_out:
        print(REMARKS["left out"].format(files=describe_left_out(together)))
    if left_out := [count for count in ranks if count > most]:
        named = ", ".join(f"{count:,}" for count in left_out)
        print(f"Not predicted, because each rank would get less than one row: {named} ranks.")
    forecasts = [
        scale.forecast(
            step,
            kind.machine,
            count,
            arguments.times_as_fast,
            scale.ALL_REDUCES[arguments.all_reduce],
            batch,
        )
        for count in ranks
        if count <= most
    ]
    print(
        f"\n{kind.what}; {arguments.reached:.0%} of its links' rates; one rank computes "
        f"{arguments.times_as_fast:g} times as fast as here; {predict_messages.SUMS[arguments.all_reduce]}:\n\n"
        f"{scale.table(forecasts)}"
    )
    picture = efficiency(
        {kind.name: {1: 1.0, **{forecast.ranks: forecast.efficiency for forecast in forecasts}}},
        title=f"{MADE_BY}: efficiency against the number of ranks",
    )
    arguments.output.write_text(picture.text, encoding="utf-8")
    print(f"\nThe picture: {arguments.output}. docs/PREDICT.md says how accurate predictions are.")
    return 0


def _run(arguments: argparse.Namespace, ranks: int) -> Visit:
    from manyhands.clinic.visit import visit

    return visit(
        arguments.script,
        arguments.arguments,
        ranks,
        arguments.line.launcher,
        timeout_s=arguments.timeout,
        stand_in=not arguments.as_it_is,
        env=arguments.line.env,
    )


def _load_machine(arguments: argparse.Namespace) -> Kind:
    """The machine of a name or of a file of the user's."""
    from manyhands.simulate import machines

    if arguments.machine.endswith(".toml"):
        return machines.from_file(arguments.machine, arguments.reached)
    return machines.named(arguments.machine, arguments.reached)


def _clinic_line(arguments: argparse.Namespace, problem: NothingMeasuredError) -> str:
    """The clinic's command line for the run that failed, as part of a message."""
    if not problem.failed:
        return ""
    line, words = arguments.line, ["manyhands", "clinic", "--ranks", str(problem.ranks)]
    words += ["--as-it-is"] * arguments.as_it_is
    if line.words:
        words += line.words
    else:
        words += ["--with", line.launcher] * (line.launcher != "torchrun")
        words += ["-m", line.module] if line.module else [str(arguments.script)]
        words += ["--", *arguments.arguments] if arguments.arguments else []
    return f"\nThe whole report: {shlex.join(words)}"


def _parse_ranks(arguments: argparse.Namespace) -> list[int]:
    """The numbers of ranks to predict; ValueError where what was typed cannot be."""
    try:
        ranks = sorted({int(number) for number in arguments.to.split(",")})
    except ValueError:
        ranks = []
    if not ranks or ranks[0] < 1 or ranks[-1] > MOST_RANKS:
        raise ValueError(
            f"--to {arguments.to}: give numbers of ranks, {MOST_RANKS:,} at most, with commas "
            "between them, as in --to 8,64,1024."
        )
    if arguments.ranks < 2:
        raise ValueError("--ranks must be 2 or more: one rank alone sends no messages.")
    if not 0 < arguments.times_as_fast < math.inf:
        raise ValueError("--times-as-fast must be a number above 0.")
    if problem := no_output_file(arguments.output, MADE_BY):
        raise ValueError(problem)
    return ranks
