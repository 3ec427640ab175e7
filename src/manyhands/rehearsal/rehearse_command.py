"""`manyhands rehearse`: run a script on CPUs with gloo, and say what NCCL would do otherwise."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands import command_line
from manyhands.cluster.launch.command_lines import LaunchError
from manyhands.own_environment import failed_import
from manyhands.rehearsal import flight_recorder, rehearsal_report
from manyhands.rehearsal.gloo_errors import (
    GLOO_ENDED_IT,
    REFUSED,
    TIMED_OUT,
    is_lost_connection,
)
from manyhands.rehearsal.hang_watch import HangWatch
from manyhands.rehearsal.on_rank_of_script import STEPS
from manyhands.rehearsal.rehearsal_limits import (
    CLEAN,
    FAILED,
    FOUND,
    PATIENCE_S,
    RANKS,
    TIMEOUT_S,
    UNKNOWN,
)
from manyhands.rehearsal.rehearsal_report import first_cause
from manyhands.rehearsal.rules import judge
from manyhands.rehearsal.trace import load

if TYPE_CHECKING:
    from manyhands.cluster.launch.run_script import Launch
    from manyhands.rehearsal.rules import Finding
    from manyhands.rehearsal.trace import Event

ON_RANK = str(Path(__file__).with_name("on_rank_of_script.py"))


@dataclass
class Rehearsal:
    """What came of it.

    `findings`; the `traces` of the ranks; `errors` {rank: text} of ranks that failed, and their
    likely `cause`, where TensorFlow's tasks are to blame; `cut`, where the time was over before the
    script had ended; `hang`, the report where all its ranks waited, with gloo too; `left`, where a
    rank had ended while others waited for it, with gloo too; `refused`, {rank: what gloo said} of
    ranks that gloo has ended, and `lost`, where gloo gave up waiting; `whole`, where it was ended
    after some steps, {rank: how many of its events are those of the steps before the last}.
    """

    script: str
    traces: dict[int, list[Event]]
    findings: list[Finding]
    errors: dict[int, str]
    cut: bool = False
    hang: str = ""
    cause: str = ""
    left: bool = False
    refused: dict[int, str] = field(default_factory=dict)
    lost: bool = False
    whole: dict[int, int] | None = None
    # phrases: what the stand-in for GPUs replaced
    substituted: list[str] = field(default_factory=list)
    # sentences for a script that has failed: why, and where it ran
    reasons: list[str] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        """Whether all ranks that had not ended waited for each other."""
        return bool(self.hang)

    @property
    def ended(self) -> bool:
        """Whether the ranks could not go on with gloo."""
        return bool(self.left or self.refused or self.lost)

    @property
    def calls(self) -> int:
        """How many calls were seen, on all ranks together."""
        return sum(
            event.kind in ("collective", "message")
            for events in self.traces.values()
            for event in events
        )

    @property
    def code(self) -> int:
        """The exit code of the command (see `rehearsal_limits`)."""
        if self.errors:
            return FAILED
        if self.hang or not all(finding.is_remark for finding in self.findings):
            return FOUND
        if self.ended:
            return FAILED
        return UNKNOWN if self.cut or not self.calls else CLEAN


def rehearse(
    script: str | Path,
    arguments: Sequence[str] = (),
    ranks: int = RANKS,
    limit_s: float = TIMEOUT_S,
    echo: bool = False,
    steps: int | None = None,
    patience_s: float = PATIENCE_S,
    stand_in: bool = True,
    nodes: int = 1,
    env: Mapping[str, str] | None = None,
) -> Rehearsal:
    """Run `script` under torchrun in a copy of its repository, and judge its calls for NCCL.

    What its `ranks` processes asked of torch.distributed is judged: a `Rehearsal`. `stand_in`:
    where there are no GPUs, one takes their place.

    With `steps`, each rank ends after so many steps of its optimizers; what the last one began need
    not have come to its end. Where all ranks wait for `patience_s`, they are ended. No process is
    left. Raises FileNotFoundError where there is no such script.
    """
    from manyhands.cluster.launch.as_main import STAND_IN, substituted
    from manyhands.cluster.launch.run_script import launch
    from manyhands.cluster.launch.script_copy import copied
    from manyhands.gpu_stand_in.kernels import explain_gpu_error

    if problem := command_line.no_script(script):
        raise FileNotFoundError(problem)
    if ranks < 1:
        raise ValueError("--ranks must be 1 or more.")
    with tempfile.TemporaryDirectory(prefix="manyhands-") as folder, copied(script) as place:
        options = {
            **({STEPS: str(steps)} if steps else {}),
            **({STAND_IN: "1"} if stand_in else {}),
            **(env or {}),
        }
        with HangWatch(folder, ranks, patience_s) as watch:
            done = launch(
                ON_RANK,
                folder,
                str(place.script),
                *arguments,
                nodes=nodes,
                ranks_per_node=ranks // nodes,
                env=place.environment(options),
                timeout_s=limit_s,
                echo=echo,
            )
        if problem := failed_import(folder):
            raise LaunchError(problem)
        made = _judge_run(place.script, folder, ranks, done, watch)
        made.substituted = substituted(folder, ranks)
        kernel = (
            explain_gpu_error(made.errors[first_cause(made.errors)], stand_in)
            if made.errors
            else None
        )
        made.reasons = [*([kernel] if kernel else []), place.facts()]
        made.errors = {rank: place.shown(text) for rank, text in made.errors.items()}
        made.findings = [
            replace(finding, file=place.shown(finding.file)) for finding in made.findings
        ]
    return made


def _judge_run(script: Path, folder: str, ranks: int, done: Launch, watch: HangWatch) -> Rehearsal:
    traces: dict[int, list[Event]] = {}
    errors: dict[int, str] = {}
    whole: dict[int, int] = {}
    running: list[int] = []
    for rank in range(ranks):
        trace, end = Path(folder, f"{rank}.trace"), Path(folder, f"{rank}.end")
        traces[rank] = load(trace.read_text()) if trace.exists() else []
        if Path(folder, f"{rank}.whole").exists():
            whole[rank] = int(Path(folder, f"{rank}.whole").read_text())
        if end.exists() and end.read_text():
            errors[rank] = end.read_text()
        elif not end.exists():
            running.append(rank)
    made = Rehearsal(script.name, traces, [], errors, whole=whole if len(whole) == ranks else None)
    made.cause = watch.cause_of(errors)
    if watch.hung and all(map(is_lost_connection, errors.values())):
        made.hang, made.errors = watch.make_fault().text, {}
    elif done.timed_out:
        made.cut = True
    else:
        _diagnose_deaths(made, running, done)
    if not made.errors:
        source = script.read_text(encoding="utf-8", errors="replace")
        # a rank that its launcher has ended may have been on its way to the next call
        complete = bool(made.hang) or not running
        made.findings = [
            _with_typed_file(finding, script)
            for finding in judge(traces, source, complete, made.whole)
        ]
    return made


def _diagnose_deaths(made: Rehearsal, running: list[int], done: Launch) -> None:
    """Tell the script's own failures from what gloo does to ranks whose calls do not fit together.

    That is judged.
    """
    for rank in running:
        words = GLOO_ENDED_IT.search(done.output.get(rank, ""))
        if done.returncodes.get(rank) == -signal.SIGABRT and "gloo::" in done.output[rank]:
            made.refused[rank] = words[1].strip() if words else ""
    for rank, text in made.errors.items():
        if words := REFUSED.search(text):
            made.refused[rank] = words[1]
    own = {
        rank: text
        for rank, text in made.errors.items()
        if not is_lost_connection(text) and rank not in made.refused
    }
    first = done.first_failed
    if not own and first in running and first not in made.refused and first is not None:
        own[first] = done.report()
    elif not own and not made.errors and not made.refused and done.returncode:
        own[first or 0] = done.report()
    if not own:
        made.left = (
            bool(made.errors)
            and not made.refused
            and len(made.errors) + len(running) < len(made.traces)
        )
        made.lost = any(map(TIMED_OUT.search, made.errors.values()))
    by_gloo = not own and (made.refused or made.left or made.lost)
    made.errors = {} if by_gloo else {**made.errors, **own}


def _with_typed_file(finding: Finding, script: Path) -> Finding:
    """With the file as it was typed: the script's by its name, others as they are."""
    return replace(finding, file=script.name) if Path(finding.file).name == script.name else finding


@command_line.sigterm_exits()
def main(argv: list[str]) -> int:
    """Run `manyhands rehearse`; returns its exit code."""
    from manyhands.cluster.launch import launch_line

    parser = command_line.parser(
        "rehearse",
        "Run a script for torchrun on CPUs, and report what NCCL on GPUs would do differently.",
        examples=[
            "train.py",
            "torchrun --nproc-per-node 2 train.py --epochs 1",
            "train.py --ranks 4 --limit 60 -- --epochs 1",
            "train.py --json > findings.json",
        ],
        usage="manyhands rehearse [options] SCRIPT [-- the script's own arguments]",
        epilog=(
            f"Exit code: {CLEAN} nothing found, {FOUND} something found, {FAILED} the script itself"
            f" failed, {UNKNOWN} not determined."
        ),
    )
    launch_line.add_options(parser, RANKS, launchers=False)
    parser.add_argument(
        "--limit",
        type=command_line.seconds,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help=f"stop the run after this time (default: {TIMEOUT_S:g})",
    )
    parser.add_argument(
        "--patience",
        type=command_line.seconds,
        default=PATIENCE_S,
        metavar="SECONDS",
        help=f"report a hang if all ranks wait for so long (default: {PATIENCE_S:g})",
    )
    parser.add_argument(
        "--flight-record",
        metavar="FOLDER",
        help="write the calls for torchfrtrace to this new folder",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the findings as JSON, and nothing else"
    )
    try:
        options = launch_line.parsed(command_line.completed(parser), argv, "rehearse", RANKS)
        if options.flight_record:
            flight_recorder.check_free(options.flight_record)
        line = options.line
        launch_line.warn(line)
        if line.launcher != "torchrun":
            print(rehearsal_report.BY_TORCHRUN.format(launcher=line.launcher), file=sys.stderr)
        rehearsal = rehearse(
            line.script,
            line.arguments,
            line.ranks,
            options.limit,
            echo=not options.json,
            patience_s=options.patience,
            stand_in=not options.as_it_is,
            nodes=line.nodes,
            env=line.env,
        )
        if options.flight_record:
            flight_recorder.write_flight_record(rehearsal.traces, options.flight_record)
    except (OSError, ValueError, LaunchError) as problem:
        return command_line.refuse("rehearse", problem)
    if options.json:
        print(
            json.dumps(
                {
                    "script": rehearsal.script,
                    "ranks": line.ranks,
                    "errors": rehearsal.errors,
                    "cut": rehearsal.cut,
                    "hang": rehearsal.hang,
                    "refused": rehearsal.refused,
                    "calls": rehearsal.calls,
                    "findings": [asdict(finding) for finding in rehearsal.findings],
                },
                indent=1,
            )
        )
    else:
        print("\n".join(rehearsal_report.describe_rehearsal(rehearsal)))
    return rehearsal.code
