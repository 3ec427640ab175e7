"""The rules: what in the traces of a program hangs, may hang, fails or differs with NCCL.

Where each rule comes from (PyTorch 2.13, NCCL 2.30):
* what a single call may not ask for: `nccl_refusals`; what comes of calls that do not match: `nccl_mismatches`;
* a batch as a group's first call, and its one work: `batch_isend_irecv`; groups that some ranks make: `new_group`;
* object collectives on the current device: the notes in their docstrings; barriers: "Use the current device set by the
  user", in `barrier`;
* two ranks on one GPU: NCCL ends with "Duplicate GPU detected";
* two groups in different orders: NCCL's user guide, "Using multiple NCCL communicators concurrently".
What hangs is decided by `manyhands.rehearsal.replay`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING, Any

from manyhands.rehearsal.call_names import MESSAGES_OF_OBJECTS
from manyhands.rehearsal.nccl_mismatches import compare_calls
from manyhands.rehearsal.nccl_refusals import find_refusals
from manyhands.rehearsal.replay import Replay
from manyhands.rehearsal.trace import CURRENT, NO_ANSWER, check

if TYPE_CHECKING:
    from manyhands.rehearsal.trace import Event, Traces

SEVERITIES = ("hangs", "fails", "may hang", "differs", "remark")
SAME = "make both sides the same, in the same order"
CAUGHT = {
    True: (
        "by default NCCL raises nothing here: the rank waits, or the watchdog ends the process",
        "let such an error end the program, and start it again from a checkpoint",
    ),
    False: (
        "the error is gloo's, and NCCL may raise a different error or none",
        "decide by dist.get_backend() what to call, and not by the error",
    ),
}


@dataclass(frozen=True)
class Finding:
    """One thing that hangs, may hang, fails or differs with NCCL, or a remark.

    `severity` is one of `SEVERITIES`; `ranks` those that it concerns; `text` what happens; `remedy`
    what to do. A remark is about a measurement, and not about what the program computes: it is no
    mistake.
    """

    severity: str
    ranks: tuple[int, ...]
    file: str
    line: int
    call: str
    text: str
    remedy: str

    @property
    def is_remark(self) -> bool:
        """Whether it is about a measurement, and no mistake."""
        return self.severity == "remark"

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else f"line {self.line}"
        ranks = f"rank{'s' if len(self.ranks) > 1 else ''} {', '.join(map(str, self.ranks))}"
        return f"{self.severity}: {where}, {ranks}: {self.call} {self.text}; {self.remedy}."


# (severity, file, line, call, text, remedy) -> the ranks that it concerns
RanksByFinding = dict[tuple[str, str, int, str, str, str], set[int]]
FirstCalls = dict[str, "dict[int, Event]"]  # by group and rank
Whole = Mapping[int, int] | None  # how many of a rank's events must have come to their end


def judge(
    traces: Traces, source: str = "", ended: bool = True, whole: Whole = None
) -> list[Finding]:
    """`[Finding, ...]`, the worst first, of the traces of all ranks: {global rank: [Event, ...]}.

    `source`, the program's text, is searched for where it waits for its GPU before it reads a
    clock. `ended`: whether the traces go to the program's end; what is stuck at the end of others
    may only have been cut off, and is not reported: only calls that have begun are compared with each
    other. `whole`: where all ranks were cut off at the same place, {rank: so many of its events}:
    those must have come to their end, and what is left open of later ones is not reported. The ranks
    that a line concerns in the same way are one finding. Raises `trace.BadTraceError`.
    """
    check(traces)
    ranks_of: RanksByFinding = defaultdict(set)
    first = _first_calls(traces)
    for rank, events in traces.items():
        for event, severity, text, remedy in _judge_rank(rank, events, first, source, ended, whole):
            ranks_of[severity, event.file, event.line, event.call, text, remedy].add(rank)
    refused = any(
        part.peer is None for events in traces.values() for event in events for part in event.parts
    )
    hangs = _add_replayed(traces, ranks_of, ended and not refused, whole)
    if not hangs:
        _add_orders(traces, ranks_of)
    _add_groups(traces, ranks_of, ended)
    _add_same_gpu(traces, ranks_of)
    if not ended and whole is None:
        _add_begun(traces, ranks_of)
    findings = [
        Finding(severity, tuple(sorted(ranks)), file, line, call, text, remedy)
        for (severity, file, line, call, text, remedy), ranks in ranks_of.items()
    ]
    return sorted(
        findings,
        key=lambda finding: (
            SEVERITIES.index(finding.severity),
            finding.file,
            finding.line,
            finding.ranks,
            finding.text,
        ),
    )


# --- one rank's calls, one by one -----------------------------------------------------------------


def _judge_rank(
    rank: int, events: Sequence[Event], first: FirstCalls, source: str, ended: bool, whole: Whole
) -> Iterator[tuple[Event, str, str, str]]:
    waited = {event.of for event in events if event.kind == "wait"}
    queued, clocks = False, 0
    for number, event in enumerate(events):
        if event.kind in ("collective", "message") and not event.on_cpu:
            queued = not event.waits_for_gpu
            yield from ((event, *refusal) for refusal in find_refusals(event))
            yield from ((event, *refusal) for refusal in _judge_set_up(rank, event, first))
            unwaited = event.is_async and number not in waited and not event.library
            if unwaited and ended and _must_end(rank, number, whole):
                yield (
                    event,
                    "differs",
                    "is never waited for, so the program cannot know when its tensor may be used",
                    "call wait() on each work that it returns",
                )
        elif event.kind == "clock":
            if clocks and queued and "synchronize" not in source:
                yield (
                    event,
                    "remark",
                    "reads a clock when the operation is queued on the GPU, not when it is done",
                    "call torch.cuda.synchronize() before each reading",
                )
            clocks, queued = clocks + 1, False
        elif event.kind == "read":
            queued = False
        elif event.kind == "early" and not events[event.of or 0].on_cpu:
            yield (
                event,
                "differs",
                f"{event.text}: on a GPU it may not have arrived yet",
                "call the work's wait() first",
            )
        elif event.kind == "works" and not event.on_cpu:
            yield (
                event,
                "fails",
                "returns one work for all its messages with NCCL, and the program takes another",
                "wait for the works that were returned: for work in works: work.wait()",
            )
        elif event.kind == "error" and not event.on_cpu:
            then, remedy = CAUGHT[event.text == NO_ANSWER]
            yield event, "differs", f"raised {event.text}, which the program caught: {then}", remedy


def _must_end(rank: int, number: int, whole: Whole) -> bool:
    """Whether an event was to have come to its end where its rank was cut off."""
    return whole is None or number < whole[rank]


def _judge_set_up(rank: int, event: Event, first: FirstCalls) -> Iterator[tuple[str, str, str]]:
    if event.text == CURRENT:
        yield (
            "may hang",
            "uses the current GPU, which no call chooses, so all ranks use GPU 0",
            "call torch.cuda.set_device(local_rank) at the start where there are GPUs",
        )
    calls = first[event.group]
    opens = event.is_batch and calls.get(rank) is event
    if opens and not all(other in calls and calls[other].is_batch for other in event.ranks):
        yield (
            "may hang",
            "is the group's first call, and not all of its ranks make it, which is undefined",
            "make a collective of the whole group first",
        )


def _first_calls(traces: Traces) -> FirstCalls:
    """{group: {rank: the first event there}}."""
    first: FirstCalls = defaultdict(dict)
    for rank, events in traces.items():
        for event in events:
            if event.kind in ("collective", "message"):
                first[event.group].setdefault(rank, event)
    return first


# --- all ranks together ---------------------------------------------------------------------------


def _add_replayed(
    traces: Traces, ranks_of: RanksByFinding, ended: bool, whole: Whole
) -> dict[Any, set[bool]]:
    """Add what the replay in its four ways says; whether anything is stuck."""
    stuck: dict[Any, set[bool]] = defaultdict(set)
    odd: set[Any] = set()
    for eager in (False, True):
        strict = Replay(traces, eager)
        sure = bool(strict.stuck()) and bool(Replay(traces, eager, buffered=True).stuck())
        for rank, event, why in strict.stuck() if ended else ():
            number = next(
                number for number, candidate in enumerate(traces[rank]) if candidate is event
            )
            if not _must_end(rank, number, whole):
                continue
            stuck[
                rank, event.file, event.line, event.call, why, "hangs" if sure else "may hang"
            ].add(eager)
        for item, other, severity, what in strict.mismatches:
            where = f"meets {other.event.call} of rank {other.rank} (line {other.event.line})"
            odd.add(
                (
                    (severity, where + what),
                    item.rank,
                    item.event.file,
                    item.event.line,
                    item.event.call,
                )
            )
    for (rank, *place, why, severity), ways in stuck.items():
        only = (
            ""
            if len(ways) == 2
            else " (with device_id)"
            if True in ways
            else " (without device_id)"
        )
        small = "" if severity == "hangs" else "; a small message may get through"
        ranks_of[(severity, *place, why + only + small, _choose_remedy(place[2], why))].add(rank)
    for (severity, text), rank, *place in odd:
        ranks_of[(severity, *place, text, SAME)].add(rank)
    return stuck


def _choose_remedy(call: str, why: str) -> str:
    if call.removeprefix("i") in ("send", "recv", *MESSAGES_OF_OBJECTS):
        return (
            "send first on one side and receive first on the other, or give both to one "
            "batch_isend_irecv"
        )
    if call == "batch_isend_irecv":
        return "put the messages that answer each other into one batch on each side"
    return "let all ranks of the group make this call, in one order with all others"


def _add_orders(traces: Traces, ranks_of: RanksByFinding) -> None:
    """Find collectives of several groups that are started in different orders.

    Where they are under way simultaneously, all ranks have to start them in one order.
    """
    for a, b in combinations(sorted(traces), 2):
        # a rank may start more of them: other rules say so
        for call, other in zip(_shared(traces[a], a, b), _shared(traces[b], a, b), strict=False):
            if call.group != other.group:
                ranks_of[
                    "may hang",
                    call.file,
                    call.line,
                    call.call,
                    "is started before a collective of another group, "
                    f"and rank {b} starts them in the other order (line {other.line})",
                    "start the collectives of all groups in one order on all ranks",
                ].add(a)
                break


def _add_groups(traces: Traces, ranks_of: RanksByFinding, ended: bool) -> None:
    """Find groups that not all ranks make in one order.

    They have to make also those that they are no members of.
    """
    made = {
        rank: [event for event in events if event.kind == "group"]
        for rank, events in traces.items()
    }
    for calls in zip_longest(*made.values()):
        there = {rank: call for rank, call in zip(made, calls, strict=True) if call}
        if len({call.text for call in there.values()}) > 1 or (ended and len(there) < len(made)):
            for rank, call in there.items():
                ranks_of[
                    "may hang",
                    call.file,
                    call.line,
                    call.call,
                    "is not called for the same ranks by all ranks: "
                    "they meet in it where device_id is given, and number their groups by it",
                    "call it on all ranks of the program, members or not, in one order",
                ].add(rank)
            break


def _add_same_gpu(traces: Traces, ranks_of: RanksByFinding) -> None:
    """Find collectives for which several ranks have their tensors on one GPU.

    Of each group it is the first one.
    """
    for by_rank in _collectives(traces).values():
        # of those that all ranks have come to
        for calls in zip(*by_rank.values(), strict=False):
            by_gpu: dict[int | None, list[tuple[int, Event]]] = defaultdict(list)
            for rank, call in zip(by_rank, calls, strict=True):
                by_gpu[call.gpu].append((rank, call))
            shared = [
                pair
                for gpu, pairs in by_gpu.items()
                if gpu is not None and len(pairs) > 1
                for pair in pairs
            ]
            for rank, call in shared:
                ranks_of[
                    "fails",
                    call.file,
                    call.line,
                    call.call,
                    "is given tensors that are on the same GPU on several "
                    "ranks, and NCCL takes one rank for each GPU",
                    "call torch.cuda.set_device(local_rank) before the first tensor is put on a "
                    "GPU, with the number of this process on its machine",
                ].add(rank)
            if shared:
                break


def _collectives(traces: Traces) -> dict[str, dict[int, list[Event]]]:
    """{group: {rank: [its collectives]}}, without CPU groups."""
    begun: dict[str, dict[int, list[Event]]] = defaultdict(dict)
    for rank, events in traces.items():
        for event in events:
            if event.kind == "collective" and not event.on_cpu:
                begun[event.group].setdefault(rank, []).append(event)
    return begun


def _add_begun(traces: Traces, ranks_of: RanksByFinding) -> None:
    """Compare collectives that some ranks of the group have not come to.

    The others must have begun the same one.
    """
    for by_rank in _collectives(traces).values():
        for calls in zip_longest(*by_rank.values()):
            (rank, event), *others = [
                (rank, call) for rank, call in zip(by_rank, calls, strict=True) if call
            ]
            for other, call in others if len(others) + 1 < len(event.ranks) else ():
                if apart := compare_calls(event, call, rank, other):
                    severity, what = apart
                    ranks_of[
                        severity,
                        event.file,
                        event.line,
                        event.call,
                        f"meets {call.call} of rank {other} (line {call.line}){what}",
                        SAME,
                    ].add(rank)


def _shared(events: Sequence[Event], a: int, b: int) -> Iterator[Event]:
    return (
        event
        for event in events
        if event.kind == "collective" and not event.on_cpu and a in event.ranks and b in event.ranks
    )
