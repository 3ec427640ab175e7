"""Horovod's timeline: which tensor waited for whom, and which went together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from manyhands.plots import GREY, INK, PALE, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words


class Phase(NamedTuple):
    """What a tensor goes through."""

    tensor: str
    name: str
    start_ms: float
    stop_ms: float


WORDS = {
    "time": "time (ms)",
    "NEGOTIATE": "negotiation",
    "QUEUE": "waits its turn",
    "MEMCPY": "into or out of the fusion buffer",
    "GLOO": "all-reduce",
}
LOOKS = {
    "NEGOTIATE": (PALE, ""),
    "QUEUE": ("white", ""),
    "MEMCPY": (rank_colour(3), ""),
    "GLOO": (rank_colour(0), ""),
}


def read(path: str | Path) -> list[Phase]:
    """The phases in a file that `HOROVOD_TIMELINE` named, in their order.

    They are [Phase(tensor, name, start_ms, stop_ms)], with times from the file's first event.

    Call it after `hvd.shutdown()`, which ends the file. The format is that of Chrome's tracing: B
    begins a phase of the row `pid`, E ends the last one.
    """
    with open(path) as file:
        events = json.load(file)
    tensors = {
        event["pid"]: event["args"]["name"]
        for event in events
        if event.get("name") == "process_name" and "name" in event["args"]
    }
    open_phases: dict[int, list[tuple[str, float]]] = {}
    phases: list[Phase] = []
    for event in events:
        if event["ph"] == "B":
            open_phases.setdefault(event["pid"], []).append((event["name"], event["ts"]))
        elif event["ph"] == "E":
            name, start_us = open_phases[event["pid"]].pop()
            phases.append(Phase(tensors[event["pid"]], name, start_us / 1e3, event["ts"] / 1e3))
    return sorted(phases, key=lambda phase: phase.start_ms)


def pick(phases: Iterable[Phase], prefix: str, last: int | None = None) -> list[Phase]:
    """The phases of the tensors whose name begins with `prefix`, from time 0.

    The prefix is cut off. Only the `last` ones of each tensor and phase are taken.
    """
    mine = [phase for phase in phases if phase.tensor.startswith(prefix)]
    if last:
        seen: dict[tuple[str, str], int] = {}
        latest: list[Phase] = []
        for phase in reversed(mine):
            seen[phase.tensor, phase.name] = seen.get((phase.tensor, phase.name), 0) + 1
            if seen[phase.tensor, phase.name] <= last:
                latest.append(phase)
        mine = latest[::-1]
    first = min((phase.start_ms for phase in mine), default=0)
    return [
        Phase(p.tensor[len(prefix) :], p.name, p.start_ms - first, p.stop_ms - first) for p in mine
    ]


def messages(phases: Iterable[Phase]) -> int:
    """How many all-reduces ran.

    They run one after the other, so tensors whose all-reduces overlap in time went together.
    """
    count, end_ms = 0, float("-inf")
    for phase in sorted(
        (phase for phase in phases if phase.name.startswith("GLOO")),
        key=lambda phase: phase.start_ms,
    ):
        count += phase.start_ms >= end_ms
        end_ms = max(end_ms, phase.stop_ms)
    return count


@styled
def timeline(
    ways: Mapping[str, Sequence[Phase]], words: Words = WORDS, title: str = "Horovod's timeline"
) -> Svg:
    """One panel for each way; one row for each tensor; bars for its phases.

    `ways` maps names to phases. Returns an `Svg`.
    """
    rows = [len({phase.tensor for phase in phases}) for phases in ways.values()]
    fig, axes = figure(
        height=0.8 + 0.17 * sum(rows),
        rows=len(ways),
        sharex=True,
        squeeze=False,
        height_ratios=rows,
    )
    for ax, (name, phases) in zip(axes[:, 0], ways.items(), strict=True):
        order = list(dict.fromkeys(phase.tensor for phase in phases))
        # long ones first, what is inside them on top
        for phase in sorted(phases, key=lambda phase: phase.start_ms - phase.stop_ms):
            kind = next((kind for kind in LOOKS if phase.name.startswith(kind)), None)
            if kind:
                fill, hatch = LOOKS[kind]
                ax.barh(
                    order.index(phase.tensor),
                    phase.stop_ms - phase.start_ms,
                    left=phase.start_ms,
                    height=0.8,
                    color=fill,
                    hatch=hatch,
                    edgecolor=GREY,
                    linewidth=0.4,
                )
        ax.set(
            title=name, yticks=range(len(order)), yticklabels=order, ylim=(len(order) - 0.4, -0.6)
        )
        ax.tick_params(axis="y", length=0, labelsize=7)
        ax.grid(axis="x")
    axes[-1, 0].set_xlabel(words["time"])
    from matplotlib.patches import Patch

    shown = [
        kind
        for kind in LOOKS
        if any(phase.name.startswith(kind) for phases in ways.values() for phase in phases)
    ]
    axes[0, 0].legend(
        handles=[
            Patch(facecolor=LOOKS[kind][0], edgecolor=INK, linewidth=0.4, label=words[kind])
            for kind in shown
        ],
        loc="upper right",
        fontsize=7.5,
    )
    return svg(fig, title)
