"""`manyhands rehearse`: run a script on CPUs with gloo, and say what NCCL would do otherwise."""

import json
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from manyhands import command_line
from manyhands.cluster.launch.command_lines import LaunchError
from manyhands.own_environment import failed_import
from manyhands.rehearsal import flight_recorder, telling
from manyhands.rehearsal.on_rank_of_script import STEPS
from manyhands.rehearsal.rules import judge
from manyhands.rehearsal.trace import load

ON_RANK = str(Path(__file__).with_name("on_rank_of_script.py"))
QUIET_S = 5.0  # ranks that have asked for nothing for so long when the time is over wait for each other
CLEAN, FOUND, FAILED = 0, 1, 2


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

    @property
    def code(self):
        if self.errors or (self.waits or self.left) and not self.findings:
            return FAILED
        return FOUND if self.findings else CLEAN


def rehearse(script, arguments=(), ranks=4, limit_s=120, echo=False, steps=None):
    """Run `script` on `ranks` processes under torchrun, and judge what they asked of torch.distributed: a `Rehearsal`.

    With `steps`, each rank ends after so many steps of its optimizers; what the last one began need not have come to
    its end. Every process has ended then. Raises FileNotFoundError where there is no such script.
    """
    from manyhands.cluster.launch.run_script import launch

    if problem := command_line.no_script(script):
        raise FileNotFoundError(problem)
    if ranks < 1:
        raise ValueError("--ranks must be 1 or more.")
    with tempfile.TemporaryDirectory(prefix="manyhands-") as folder:
        done = launch(ON_RANK, folder, str(Path(script).resolve()), *arguments, nodes=1, ranks_per_node=ranks,
                      env={STEPS: str(steps)} if steps else {}, timeout_s=limit_s, echo=echo)
        if problem := failed_import(folder):
            raise LaunchError(problem)
        return _judged(Path(script), folder, ranks, done)


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


def _lost(error):
    """Whether an error is gloo's that the other side of a connection is gone: with NCCL a rank would wait for it."""
    return "gloo/transport" in error and any(one in error for one in ("closed by peer", "reset by peer", "Broken pipe"))


def _shown(finding, script):
    """With the file as it was typed: the script's by its name, others as they are."""
    return replace(finding, file=script.name) if Path(finding.file).name == script.name else finding


def told(rehearsal):
    """The lines that a terminal shows."""
    if rehearsal.errors:
        rank, text = min(rehearsal.errors.items(), key=lambda one: (_lost(one[1]), one[0]))  # the cause, if it is there
        script = command_line.printable(rehearsal.script)
        return [f"rank {rank} of {script} fails by itself, so nothing was judged:", text.rstrip()]
    lines = []
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
    parser = command_line.parser(
        "rehearse", "Run a script for torchrun on CPUs, and say what NCCL on GPUs would do otherwise.",
        examples=["train.py", "train.py --ranks 4 --limit 60 -- --epochs 1", "train.py --json > findings.json"],
        usage="manyhands rehearse [options] SCRIPT [-- the script's own arguments]",
        epilog=f"Exit code: {CLEAN} nothing found, {FOUND} something found, {FAILED} the script itself fails.")
    parser.add_argument("script", help="a script as torchrun would start it; it is not changed"
                        ).completer = command_line.python_files
    parser.add_argument("--ranks", type=int, default=4, help="how many processes (default: 4)")
    parser.add_argument("--limit", type=command_line.seconds, default=120, metavar="SECONDS",
                        help="when to end it (default: 120)")
    parser.add_argument("--flight-record", metavar="FOLDER", help="write the calls for torchfrtrace into a new folder")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON, and nothing else")
    mine, own = command_line.scripts_own(argv)
    options = command_line.completed(parser).parse_args(mine)
    try:
        if options.flight_record:
            flight_recorder.check_free(options.flight_record)
        rehearsal = rehearse(options.script, own, options.ranks, options.limit, echo=not options.json)
        if options.flight_record:
            flight_recorder.write_flight_record(rehearsal.traces, options.flight_record)
    except (OSError, ValueError, LaunchError) as problem:
        return command_line.refuse("rehearse", problem)
    if options.json:
        print(json.dumps({"script": rehearsal.script, "ranks": options.ranks, "errors": rehearsal.errors,
                          "cut": rehearsal.cut, "findings": [asdict(one) for one in rehearsal.findings]}, indent=1))
    else:
        print("\n".join(told(rehearsal)))
    return rehearsal.code
