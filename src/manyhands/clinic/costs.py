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
    # part of the time; empty where the kernel does not count it
    runs: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    asleep: list[float] = field(default_factory=list)
    # also a part: of the thread that waits the longest for a core
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
    count = min((len(cost["bounds"]) - 1 for cost in ranks), default=0)
    if count < 1:
        return None
    first = 1 if count > 1 else 0  # the first one warms up
    windows = [(cost["bounds"][first], cost["bounds"][count]) for cost in ranks]
    steps = count - first
    costs = Costs(
        [(stop - start) * 1e3 / steps for start, stop in windows],
        [_sum_kinds(cost, window, steps) for cost, window in zip(ranks, windows, strict=True)],
        steps=steps,
    )
    costs.gpu = any(cost["gpu_peak_bytes"] for cost in ranks)
    costs.peak_mib = [(cost["gpu_peak_bytes"] or cost["peak_bytes"]) / 2**20 for cost in ranks]
    kernels = [[times for times in cost["kernel"] if times] for cost in ranks]
    if all(
        kernel and len(kernel) == len(cost["kernel"])
        for kernel, cost in zip(kernels, ranks, strict=True)
    ):
        for rank_cost, kernel, (start, stop) in zip(ranks, kernels, windows, strict=True):
            ran, ready = (kernel[count][i] - kernel[first][i] for i in (0, 1))
            costs.runs.append(ran / (stop - start))
            costs.ready.append(ready / (stop - start))
            costs.asleep.append(max(0.0, 1 - (ran + ready) / (stop - start)))
            costs.waited.append(
                _part_without_core(
                    rank_cost["threads"][first], rank_cost["threads"][count], stop - start
                )
            )
    _add_messages(costs, ranks, windows[0], steps)
    _add_lanes(costs, ranks, first + steps // 2)
    return costs


def _part_without_core(
    before: Mapping[str, float], after: Mapping[str, float], seconds: float
) -> float:
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
        _overlap_s((start, stop), window) - sum(_overlap_s((start, stop), span) for span in inner)
        for name, start, stop in facts["spans"]
        if name == "step"
    ) / (count - first)


def _sum_kinds(cost: Cost, window: tuple[float, float], steps: int) -> dict[str, float]:
    return {
        kind: sum(
            _overlap_s((start, stop), window) for name, start, stop in cost["spans"] if name == kind
        )
        * 1e3
        / steps
        for kind in KINDS
    }


def _overlap_s(a: Sequence[float], b: Sequence[float]) -> float:
    return max(0.0, min(a[1], b[1]) - max(a[0], b[0]))


def _add_messages(costs: Costs, ranks: list[Cost], window: tuple[float, float], steps: int) -> None:
    from manyhands.ledger import merge

    calls = [call for call in ranks[0]["calls"] if window[0] <= call["start"] < window[1]]
    costs.calls = len(calls) / steps
    # a rank that has timed a step has one
    merged = merge(cast("list[Account]", [cost["account"] for cost in ranks]))
    all_steps = max(1, min(len(cost["bounds"]) - 1 for cost in ranks))
    costs.sent_bytes = [account["bytes_sent"] / all_steps for account in merged.ranks]
    costs.table = merged.table() if merged.messages else ""
    ended = [(call["start"], call["stop"]) for call in calls if call["stop"]]
    under_way = sum(stop - start for start, stop in ended)
    backwards = [(start, stop) for name, start, stop in ranks[0]["spans"] if name == "backward"]
    if under_way:
        costs.overlap = (
            sum(_overlap_s(call, span) for call in ended for span in backwards) / under_way
        )


def _add_lanes(costs: Costs, ranks: list[Cost], number: int) -> None:
    begin = min(cost["bounds"][number] for cost in ranks)
    for rank, cost in enumerate(ranks):
        window = cost["bounds"][number : number + 2]
        if len(window) < 2:
            return
        spans = [
            (kind, start, stop)
            for kind, start, stop in cost["spans"]
            if _overlap_s((start, stop), window)
        ]
        spans += [
            ("message", call["start"], call["stop"])
            for call in cost["calls"]
            if call["stop"] and _overlap_s((call["start"], call["stop"]), window)
        ]
        costs.lanes[rank] = [
            (kind, (max(start, window[0]) - begin) * 1e3, (min(stop, window[1]) - begin) * 1e3)
            for kind, start, stop in spans
        ]


def remarks(costs: Costs, horovod: bool) -> list[Finding]:
    """What one should know of the costs: [Finding]."""
    findings = []
    waits = mean(
        kinds["input"] / step for kinds, step in zip(costs.kinds_ms, costs.step_ms, strict=True)
    )
    if waits > INPUT_SHARE:
        findings.append(Finding("input", {"part": waits}))
    if costs.ready and mean(costs.ready) > NO_CORE_SHARE:
        findings.append(Finding("few cores", {"part": mean(costs.ready), "cores": os.cpu_count()}))
    elif costs.asleep and max(costs.asleep) - min(costs.asleep) > ASLEEP_DIFFERENCE:
        findings.append(
            Finding(
                "straggler",
                {
                    "least": min(costs.asleep),
                    "most": max(costs.asleep),
                    "rank": costs.asleep.index(min(costs.asleep)),
                },
            )
        )
    if horovod:
        findings.append(Finding("horovod bytes", {}))
    return findings
