"""`manyhands rehearse`: run a script on CPUs with gloo, and say what NCCL would do otherwise."""

import json
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from manyhands import command_line, gpu_stand_in
from manyhands.rehearsal import flight_recorder, telling
from manyhands.rehearsal.on_rank_of_script import STEPS
from manyhands.rehearsal.rules import judge
from manyhands.rehearsal.trace import load

ON_RANK = str(Path(__file__).with_name("on_rank_of_script.py"))
QUIET_S = 5.0  # ranks that have asked for nothing for so long when the time is over wait for each other
CLEAN, FOUND, FAILED = 0, 1, 2
RANKS = 4  # by default


@dataclass
class Rehearsal:
    """What came of it: `findings`; the `traces` of the ranks; `errors` {rank: text} of ranks that failed; `cut`, where
    the time was over while the script was still at work; `waits`, where all its ranks waited, with gloo too; `left`,
    where a rank had ended while others waited for it, with gloo too; `whole`, where it was ended after some steps,
    {rank: how many of its events are those of the steps before the last}."""

    script: str
    traces: dict
    findings: list
    errors: dict
    cut: bool = False
    waits: bool = False
    left: bool = False
    whole: dict | None = None
    substituted: list = field(default_factory=list)  # phrases: what the stand-in for GPUs took the place of
    reasons: list = field(default_factory=list)  # sentences for a script that has failed: why, and where it ran

    @property
    def code(self):
        if self.errors or (self.waits or self.left) and not self.findings:
            return FAILED
        return FOUND if self.findings else CLEAN


def rehearse(script, arguments=(), ranks=4, limit_s=120, echo=False, steps=None, stand_in=True, nodes=1, env=None):
    """Run `script` on `ranks` processes under torchrun, in a copy of its repository, and judge what they asked of
    torch.distributed: a `Rehearsal`. `stand_in`: where there are no GPUs, one takes their place.

    With `steps`, each rank ends after so many steps of its optimizers; what the last one began need not have come to
    its end. Every process has ended then. Raises FileNotFoundError where there is no such script.
    """
    from manyhands.cluster.launch.as_main import STAND_IN, substituted
    from manyhands.cluster.launch.run_script import launch
    from manyhands.cluster.launch.script_copy import copied
    from manyhands.gpu_stand_in.kernels import sentence

    if problem := command_line.no_script(script):
        raise FileNotFoundError(problem)
    if ranks < 1:
        raise ValueError("--ranks must be 1 or more.")
    with tempfile.TemporaryDirectory(prefix="manyhands-") as folder, copied(script) as place:
        options = {**({STEPS: str(steps)} if steps else {}), **({STAND_IN: "1"} if stand_in else {}), **(env or {})}
        done = launch(ON_RANK, folder, str(place.script), *arguments, nodes=nodes, ranks_per_node=ranks // nodes, env=options,
                      timeout_s=limit_s, echo=echo)
        made = _judged(place.script, folder, ranks, done)
        made.substituted = substituted(folder, ranks)
        made.reasons = [*filter(None, [made.errors and sentence(made.errors[_cause(made.errors)], stand_in)]), place.facts()]
        made.errors = {rank: place.shown(text) for rank, text in made.errors.items()}
        made.findings = [replace(one, file=place.shown(one.file)) for one in made.findings]
    return made


def _judged(script, folder, ranks, done):
    traces, errors, quiet, whole = {}, {}, [], {}
    for rank in range(ranks):
        trace, end = Path(folder, f"{rank}.trace"), Path(folder, f"{rank}.end")
        traces[rank] = load(trace.read_text()) if trace.exists() else []
        if Path(folder, f"{rank}.whole").exists():
            whole[rank] = int(Path(folder, f"{rank}.whole").read_text())
        if end.exists() and end.read_text():
            errors[rank] = end.read_text()
        elif not end.exists():
            quiet.append(bool(traces[rank]) and time.time() - trace.stat().st_mtime > QUIET_S)
    if not errors and not done.timed_out and done.returncode:
        errors[done.first_failed or 0] = done.report()
    left = bool(errors) and all(map(_lost, errors.values())) and any(
        end.read_text() == "" for end in Path(folder).glob("*.end"))
    if left:
        errors = {}
    made = Rehearsal(script.name, traces, [], errors, left=left, cut=done.timed_out and not all(quiet),
                     waits=done.timed_out and all(quiet), whole=whole if len(whole) == ranks else None)
    if not errors:
        source = script.read_text(encoding="utf-8", errors="replace")
        made.findings = [_shown(one, script) for one in judge(traces, source, not made.cut, made.whole)]
    return made


def _cause(errors):
    """The rank whose error is the cause of the others', if that is seen."""
    return min(errors, key=lambda rank: (_lost(errors[rank]), rank))


def _lost(error):
    """Whether an error is gloo's that the other side of a connection is gone: with NCCL a rank would wait for it."""
    return "gloo/transport" in error and any(one in error for one in ("closed by peer", "reset by peer", "Broken pipe"))


def _shown(finding, script):
    """With the file as it was typed: the script's by its name, others as they are."""
    return replace(finding, file=script.name) if Path(finding.file).name == script.name else finding


def told(rehearsal):
    """The lines that a terminal shows."""
    if rehearsal.errors:
        rank, script = _cause(rehearsal.errors), command_line.printable(rehearsal.script)
        return [f"rank {rank} of {script} fails by itself, so nothing was judged:", rehearsal.errors[rank].rstrip(),
                *rehearsal.reasons]
    lines = [gpu_stand_in.in_words(rehearsal.substituted)] if rehearsal.substituted else []
    if rehearsal.waits:
        lines.append("With gloo, too, its ranks waited for each other until the time was over.")
    if rehearsal.left:
        lines.append("With gloo, too, a rank had ended while others waited for it.")
    if rehearsal.cut:
        lines.append("It was still at work when the time was over (--limit): what hangs at its end was not looked for.")
    if not any(event.kind in ("collective", "message") for events in rehearsal.traces.values() for event in events):
        lines.append(f"{rehearsal.script} has called nothing of torch.distributed: "
                     "is it the script that torchrun starts?")
    return lines + telling.lines(rehearsal.findings, rehearsal.traces)


def main(argv):
    from manyhands.cluster.launch import launch_line

    parser = command_line.parser(
        "rehearse", "Run a script for torchrun on CPUs, and say what NCCL on GPUs would do otherwise.",
        examples=["train.py", "torchrun --nproc-per-node 2 train.py --epochs 1", "train.py --ranks 4 --limit 60 -- --epochs 1", "train.py --json > findings.json"],
        usage="manyhands rehearse [options] SCRIPT [-- the script's own arguments]",
        epilog=f"Exit code: {CLEAN} nothing found, {FOUND} something found, {FAILED} the script itself fails.")
    launch_line.add_options(parser, RANKS, launchers=False)
    parser.add_argument("--limit", type=command_line.seconds, default=120, metavar="SECONDS",
                        help="when to end it (default: 120)")
    parser.add_argument("--flight-record", metavar="FOLDER", help="write the calls for torchfrtrace into a new folder")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON, and nothing else")
    try:
        options = launch_line.parsed(command_line.completed(parser), argv, "rehearse", RANKS)
        if options.flight_record:
            flight_recorder.check_free(options.flight_record)
        line = options.line
        launch_line.warn(line)
        rehearsal = rehearse(line.script, line.arguments, line.ranks, options.limit, echo=not options.json,
                             stand_in=not options.as_it_is, nodes=line.nodes, env=line.env)
        if options.flight_record:
            flight_recorder.write_flight_record(rehearsal.traces, options.flight_record)
    except (OSError, ValueError) as problem:
        return command_line.refuse("rehearse", problem)
    if options.json:
        print(json.dumps({"script": rehearsal.script, "ranks": line.ranks, "errors": rehearsal.errors,
                          "cut": rehearsal.cut, "findings": [asdict(one) for one in rehearsal.findings]}, indent=1))
    else:
        print("\n".join(told(rehearsal)))
    return rehearsal.code
