"""The report of a rehearsal: its sentences, and the picture of a hang."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from manyhands import command_line
from manyhands.gpu_stand_in.substitution_messages import describe_substitutions
from manyhands.rehearsal.gloo_errors import is_lost_connection
from manyhands.rehearsal.replay import Replay

if TYPE_CHECKING:
    from manyhands.plots import Svg
    from manyhands.rehearsal.rehearse_command import Rehearsal
    from manyhands.rehearsal.rules import Finding
    from manyhands.rehearsal.trace import Event, Traces

BY_TORCHRUN = (
    "A rehearsal starts the ranks as torchrun does, not with {launcher}. Therefore the script must "
    "take its rank from torchrun's variables, and the calls of Horovod and MPI are not seen."
)
CANNOT_SEE = (
    "It cannot see branches that this run did not take, C++ code that calls NCCL directly, streams "
    "that you create, most tensors that stay on the CPU, and the use of memory."
)


def describe_findings(
    findings: Iterable[Finding], traces: Traces, place: Callable[[str, int], str] | None = None
) -> list[str]:
    """Return the lines for a terminal or a cell.

    They have each finding, then what was looked at and what cannot be seen.

    Findings of one line that differ only in the numbers of ranks are reported once, as the text of
    the first. `place(file, line)` names a line; without it, file and number.
    """
    place = place or (lambda file, line: f"{file}:{line}" if file else "outside your code")
    lines: list[str] = []
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (
            finding.severity,
            finding.file,
            finding.line,
            finding.call,
            finding.remedy,
            re.sub(r"\d+", "", finding.text),
        )
        alike.setdefault(key, []).append(finding)
    for first, *others in alike.values():
        all_ranks = sorted({rank for each in (first, *others) for rank in each.ranks})
        ranks = f"rank{'s' if len(all_ranks) > 1 else ''} {', '.join(map(str, all_ranks))}"
        says = f"{first.call} {first.text}."
        if others:
            says = f"On rank {first.ranks[0]}: {says} The same holds on the other ranks."
        lines += [
            f"{first.severity.upper()}: {place(first.file, first.line)}, {ranks}",
            f"    {says}",
            f"    What to do: {first.remedy}.",
        ]
    remarks = sum(first.is_remark for first, *_ in alike.values())
    number = len(alike) - remarks
    also = f" and {_number(remarks, 'remark')}" if remarks else ""
    lines.append(
        f"{number or 'No'} finding{'' if number == 1 else 's'}{also} in {describe_coverage(traces)}."
    )
    return [*lines, CANNOT_SEE]


def describe_coverage(traces: Traces) -> str:
    """Describe in a phrase what was looked at."""
    kinds = Counter(event.kind for events in traces.values() for event in events)
    messages = sum(
        part.way == "send" for events in traces.values() for event in events for part in event.parts
    )
    groups = {
        event.group
        for events in traces.values()
        for event in events
        if event.kind in ("collective", "message")
    }
    return (
        f"{_number(kinds['collective'], 'call')} of collectives and {_number(messages, 'message')} "
        f"of {_number(len(traces), 'rank')} in {_number(len(groups), 'group')}, their waits, reads "
        "and clocks"
    )


def _number(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def draw_hang(findings: Iterable[Finding], traces: Traces) -> Svg | None:
    """Draw what is done and what is stuck with NCCL (`manyhands.plots.stuck`).

    None where nothing hangs.
    """
    if not any(finding.severity in ("hangs", "may hang") for finding in findings):
        return None
    for eager in (False, True):
        replay = Replay(traces, eager)
        stuck_calls = replay.stuck()
        if stuck_calls:
            break
    else:
        return None
    from manyhands.plots.stuck import stuck

    done = [(ends[0][1].call, [rank for rank, _ in ends], ends[0][1].kind) for ends in replay.done]
    waiting = {rank: (event.call, _awaited(replay, rank, event)) for rank, event, _ in stuck_calls}
    return stuck(
        done, waiting, traces, title="calls that finish with NCCL, and calls that never do"
    )


def _awaited(replay: Replay, rank: int, event: Event) -> list[int]:
    """Return the ranks that this one waits for.

    They are those that are late to a meeting, else the other sides of the call.
    """
    hold = replay.hold[rank]
    if hold and hold[0] == "meets":
        return sorted(hold[1])
    others = [part.peer for part in event.parts if part.peer is not None] or event.ranks
    return sorted({other for other in others if other != rank})


def describe_rehearsal(rehearsal: Rehearsal) -> list[str]:
    """Describe in lines for a terminal what came of the rehearsal of a script."""
    if rehearsal.errors:
        rank, script = first_cause(rehearsal.errors), command_line.printable(rehearsal.script)
        return [
            f"rank {rank} of {script} failed by itself, so nothing was judged:",
            rehearsal.errors[rank].rstrip(),
            *rehearsal.cause.splitlines(),
            *rehearsal.reasons,
        ]
    lines = [describe_substitutions(rehearsal.substituted)] if rehearsal.substituted else []
    if rehearsal.hang:
        lines += [
            "All ranks that had not ended waited for so long (--patience) that they were stopped.",
            *rehearsal.hang.splitlines(),
        ]
    for rank, words in rehearsal.refused.items():
        lines.append(
            f"With gloo, too, rank {rank} could not continue, because gloo ended it. {words}".rstrip()
        )
    if rehearsal.left:
        lines.append("With gloo, too, a rank had ended while others waited for it.")
    elif rehearsal.lost and not rehearsal.refused:
        lines.append("With gloo, too, a rank waited in vain for another rank.")
    if rehearsal.cut:
        lines.append(
            "Not determined, because the script had not ended when the time was over (--limit)"
            + (
                ", so later calls, and a hang at its end, were not looked for."
                if rehearsal.calls
                else ", and had not yet called anything of torch.distributed."
            )
        )
    elif not rehearsal.calls and not rehearsal.hang:
        lines.append(
            f"Not determined, because {rehearsal.script} did not call torch.distributed. Is it the "
            "script that torchrun starts?"
        )
    return lines + (
        describe_findings(rehearsal.findings, rehearsal.traces) if rehearsal.calls else []
    )


def first_cause(errors: Mapping[int, str]) -> int:
    """Find the rank whose error is the cause of the others', if that is seen."""
    return min(errors, key=lambda rank: (is_lost_connection(errors[rank]), rank))
