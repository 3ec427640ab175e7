"""What a step costs, from the spans, the kernel's counts and the ledger of each rank."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import TYPE_CHECKING, cast

from manyhands.clinic.rule import Finding
from manyhands.clinic.tolerances import ASLEEP_DIFFERENCE, INPUT_SHARE, NO_CORE_SHARE

if TYPE_CHECKING:
    from manyhands.clinic.records import Cost, Span
    from manyhands.ledger.account import Account

KINDS = ("input", "forward", "backward", "step")


@dataclass
class Costs:
    """What a step costs, by rank: milliseconds, by kind of work; parts of the time; MiB."""

    step_ms: list[float]
    kinds_ms: list[dict[str, float]]  # by rank {kind: ms}
    # part of the time; empty where the kernel does not tell
    runs: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    asleep: list[float] = field(default_factory=list)
    # likewise: the thread that waits the longest for a core
    waited: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)
    gpu: bool = False
    calls: float = 0.0  # collectives and messages that rank 0 begins in a step
    sent_bytes: list[float] = field(default_factory=list)  # by rank, a step
    # part of the time of rank 0's collectives that lies in its backward
    overlap: float | None = None
    table: str = ""
    # rank -> [(kind, start_ms, stop_ms)] of one step
    lanes: dict[int, list[Span]] = field(default_factory=dict)
    steps: int = 0


def add_up(cost: Mapping[int, Cost]) -> Costs | None:
    """Add up the `Costs` of {rank: what it has recorded}.

    None where no step was timed on all of them.
    """
    ranks = [cost[rank] for rank in sorted(cost)]
    count = min((len(one["bounds"]) - 1 for one in ranks), default=0)
    if count < 1:
        return None
    first = 1 if count > 1 else 0  # the first one warms up
    windows = [(one["bounds"][first], one["bounds"][count]) for one in ranks]
    steps = count - first
    found = Costs(
        [(stop - start) * 1e3 / steps for start, stop in windows],
        [_kinds(one, window, steps) for one, window in zip(ranks, windows, strict=True)],
        steps=steps,
    )
    found.gpu = any(one["gpu_peak_bytes"] for one in ranks)
    found.peak_mib = [(one["gpu_peak_bytes"] or one["peak_bytes"]) / 2**20 for one in ranks]
    kernels = [[times for times in one["kernel"] if times] for one in ranks]
    if all(
        kernel and len(kernel) == len(one["kernel"])
        for kernel, one in zip(kernels, ranks, strict=True)
    ):
        for one, kernel, (start, stop) in zip(ranks, kernels, windows, strict=True):
            ran, ready = (kernel[count][i] - kernel[first][i] for i in (0, 1))
            found.runs.append(ran / (stop - start))
            found.ready.append(ready / (stop - start))
            found.asleep.append(max(0.0, 1 - (ran + ready) / (stop - start)))
            found.waited.append(_waited(one["threads"][first], one["threads"][count], stop - start))
    _messages(found, ranks, windows[0], steps)
    _lanes(found, ranks, first + steps // 2)
    return found


def _waited(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> float:
    """Return the part of this time in which one thread was ready to run and had no core.

    It is the largest part of all threads.
    """
    return (
        max((ready - before.get(thread, 0.0) for thread, ready in after.items()), default=0.0)
        / seconds
    )


def update_s(facts: Cost) -> float:
    """Return the seconds that one rank's optimiser takes in a step.

    A forward or backward that it calls (in a closure) is not counted.
    """
    count = len(facts["bounds"]) - 1
    first = 1 if count > 1 else 0
    window = facts["bounds"][first], facts["bounds"][count]
    inner = [
        (start, stop) for name, start, stop in facts["spans"] if name in ("forward", "backward")
    ]
    return sum(
        _common((start, stop), window) - sum(_common((start, stop), span) for span in inner)
        for name, start, stop in facts["spans"]
        if name == "step"
    ) / (count - first)


def _kinds(one: Cost, window: tuple[float, float], steps: int) -> dict[str, float]:
    return {
        kind: sum(
            _common((start, stop), window) for name, start, stop in one["spans"] if name == kind
        )
        * 1e3
        / steps
        for kind in KINDS
    }


def _common(a: Sequence[float], b: Sequence[float]) -> float:
    return max(0.0, min(a[1], b[1]) - max(a[0], b[0]))


def _messages(found: Costs, ranks: list[Cost], window: tuple[float, float], steps: int) -> None:
    from manyhands.ledger import merge

    calls = [call for call in ranks[0]["calls"] if window[0] <= call["start"] < window[1]]
    found.calls = len(calls) / steps
    # a rank that has timed a step has one
    merged = merge(cast("list[Account]", [one["account"] for one in ranks]))
    all_steps = max(1, min(len(one["bounds"]) - 1 for one in ranks))
    found.sent_bytes = [one["bytes_sent"] / all_steps for one in merged.ranks]
    found.table = merged.table() if merged.messages else ""
    ended = [(call["start"], call["stop"]) for call in calls if call["stop"]]
    under_way = sum(stop - start for start, stop in ended)
    backwards = [(start, stop) for name, start, stop in ranks[0]["spans"] if name == "backward"]
    if under_way:
        found.overlap = sum(_common(call, span) for call in ended for span in backwards) / under_way


def _lanes(found: Costs, ranks: list[Cost], number: int) -> None:
    begin = min(one["bounds"][number] for one in ranks)
    for rank, one in enumerate(ranks):
        window = one["bounds"][number : number + 2]
        if len(window) < 2:
            return
        spans = [
            (kind, start, stop)
            for kind, start, stop in one["spans"]
            if _common((start, stop), window)
        ]
        spans += [
            ("message", call["start"], call["stop"])
            for call in one["calls"]
            if call["stop"] and _common((call["start"], call["stop"]), window)
        ]
        found.lanes[rank] = [
            (kind, (max(start, window[0]) - begin) * 1e3, (min(stop, window[1]) - begin) * 1e3)
            for kind, start, stop in spans
        ]


def remarks(found: Costs, horovod: bool) -> list[Finding]:
    """What one should know of the costs: [Finding]."""
    said = []
    waits = mean(
        kinds["input"] / step for kinds, step in zip(found.kinds_ms, found.step_ms, strict=True)
    )
    if waits > INPUT_SHARE:
        said.append(Finding("input", {"part": waits}))
    if found.ready and mean(found.ready) > NO_CORE_SHARE:
        said.append(Finding("few cores", {"part": mean(found.ready), "cores": os.cpu_count()}))
    elif found.asleep and max(found.asleep) - min(found.asleep) > ASLEEP_DIFFERENCE:
        said.append(
            Finding(
                "straggler",
                {
                    "least": min(found.asleep),
                    "most": max(found.asleep),
                    "rank": found.asleep.index(min(found.asleep)),
                },
            )
        )
    if horovod:
        said.append(Finding("horovod bytes", {}))
    return said
