"""A step of a pipeline for several schedules, such as GPipe and 1F1B.

It shows what each rank does when, and below it how much its memory must keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from manyhands.plots import INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manyhands.plots import Svg, Words

# by rank: (kind, micro-batch, stage, start, stop)
Spans = Sequence[Sequence[tuple[str, int, int, float, float]]]
Memory = Sequence[Sequence[tuple[float, float]]]  # by rank: (time, what is kept from then on)


class Run(NamedTuple):
    """A schedule, by rank; see `gantt`."""

    spans: Spans
    memory: Memory | None


WORDS = {
    "time": "time (ms)",
    "rank": "rank {i}",
    "kept": "kept",
    "bubble": "{name}: bubble {bubble:.2f}, {ms:.0f} ms",
    "legend": (
        "dark: forward; pale: backward; hatched: backward of the weights only; "
        "the number: micro-batch; thin frame: the rank's second stage"
    ),
}


@styled
def gantt(
    runs: Mapping[str, tuple[Spans, Memory | None]],
    words: Words = WORDS,
    title: str = "schedules of a pipeline, with the memory that they need",
) -> Svg:
    """Draw a chart for each schedule, all on one time axis.

    Under each chart are the curves of its ranks' memory.

    `runs` maps a name to `(spans, memory)`: for each rank a list of (kind, micro-batch, stage,
    start_ms, stop_ms), kind "F", "B", "I" or "W"; and a list of (ms, what is kept from then on) in
    a unit of your choice, which `words["kept"]` names. `memory` may be None. Returns an `Svg`.
    """
    made = {name: Run(*run) for name, run in runs.items()}
    tall = [
        height for run in made.values() for height in ([1.0] if run.memory is None else [1.0, 0.62])
    ]
    fig, axes = figure(
        rows=len(tall),
        height=0.5 + 0.85 * sum(tall),
        sharex=True,
        squeeze=False,
        gridspec_kw={"height_ratios": tall},
    )
    panels, end_ms = iter(axes[:, 0]), max(_end(run) for run in made.values())
    most = max(
        (amount for run in made.values() for points in run.memory or () for _, amount in points),
        default=1,
    )
    for name, run in made.items():
        _chart(next(panels), name, run, words)
        if run.memory is not None:
            _curves(next(panels), run, words, most)
    axes[-1, 0].set(xlabel=words["time"], xlim=(0, end_ms * 1.01))
    fig.supxlabel(words["legend"], fontsize=7, color=INK)
    return svg(fig, title)


def _end(run: Run) -> float:
    return max(span[4] for row in run.spans for span in row)


def _chart(ax: Axes, name: str, run: Run, words: Words) -> None:
    first = [min((span[2] for span in row), default=0) for row in run.spans]
    for rank, row in enumerate(run.spans):
        for kind, micro_batch, stage, start_ms, stop_ms in row:
            pale, second = kind != "F", stage != first[rank]
            white = 0.75 if pale else 0.3 if second else 0
            ax.barh(
                rank,
                stop_ms - start_ms,
                left=start_ms,
                height=0.92,
                color=_fill(rank, white),
                edgecolor=INK,
                linewidth=0.3 if second else 0.9,
                hatch="////" if kind == "W" else None,
            )
            if kind != "W":  # its number is that of an "I" before it
                ax.text(
                    (start_ms + stop_ms) / 2,
                    rank,
                    str(micro_batch),
                    ha="center",
                    va="center",
                    fontsize=6,
                    color=INK if pale or rank % 8 in (3, 6, 7) else "white",
                    clip_on=True,
                )
    ax.set(
        title=words["bubble"].format(name=name, bubble=bubble_of(run.spans), ms=_end(run)),
        ylim=(len(run.spans) - 0.5, -0.5),
        yticks=range(len(run.spans)),
        yticklabels=[words["rank"].format(i=i) for i in range(len(run.spans))],
    )
    ax.tick_params(axis="y", length=0, labelsize=7)
    ax.tick_params(axis="x", labelbottom=False, length=0)


def _curves(ax: Axes, run: Run, words: Words, most: float) -> None:
    for rank, points in enumerate(run.memory or ()):
        times, amounts = zip(*points, strict=True)
        ax.step(
            [*times, _end(run)],
            [*amounts, amounts[-1]],
            where="post",
            color=rank_colour(rank),
            linestyle=("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))[rank % 4],
            linewidth=1.2,
        )
    ax.set(ylabel=words["kept"], ylim=(0, most * 1.1))
    ax.yaxis.label.set_fontsize(7)
    ax.tick_params(labelsize=7)
    ax.grid(True, axis="y")


def _fill(rank: int, white: float) -> list[float]:
    """The rank's colour, mixed with this part of white."""
    return [(1 - white) * int(rank_colour(rank)[k : k + 2], 16) / 255 + white for k in (1, 3, 5)]


def bubble_of(spans: Spans) -> float:
    """The part of all ranks' time, from 0 to the end of the last span, in which they do nothing."""
    busy = sum(stop_ms - start_ms for row in spans for _, _, _, start_ms, stop_ms in row)
    return 1 - busy / len(spans) / max(span[4] for row in spans for span in row)


def table(runs: Mapping[str, tuple[Spans, Memory | None]], unit: str = "kept") -> str:
    """The numbers of the picture as text: a line for each schedule."""
    lines = [f"{'':<16} {'step ms':>8} {'bubble':>7}   most {unit}, by rank"]
    for name, (spans, memory) in runs.items():
        peaks = (
            ""
            if memory is None
            else "  ".join(f"{max(amount for _, amount in points):4.1f}" for points in memory)
        )
        step_ms = max(span[4] for row in spans for span in row)
        lines.append(f"{name:<16} {step_ms:>8.0f} {bubble_of(spans):>7.3f}   {peaks}".rstrip())
    return "\n".join(lines)


def quickest(steps_per_rank: Sequence[Sequence[tuple[Any, Any]]], unit: float = 1.0) -> Run:
    """The shortest of some measured steps, as a run for `gantt`.

    steps_per_rank : of each rank, for each step, (spans, memory) in seconds of one clock: spans as above; memory as a
        list of changes, (seconds, more or less). What is kept comes in multiples of `unit`, times in ms from the
        beginning of the step's first span.
    """
    steps = list(zip(*steps_per_rank, strict=True))  # [step][rank]
    bounds = [
        (
            min(s[3] for spans, _ in step for s in spans),
            max(s[4] for spans, _ in step for s in spans),
        )
        for step in steps
    ]
    (start_s, stop_s), step = min(
        zip(bounds, steps, strict=True), key=lambda pair: pair[0][1] - pair[0][0]
    )
    spans = [
        [(*span[:3], (span[3] - start_s) * 1e3, (span[4] - start_s) * 1e3) for span in rows]
        for rows, _ in step
    ]
    memory = []
    for _, changes in step:
        points, amount = [(0.0, 0.0)], 0.0
        for seconds, change in sorted(changes):
            amount += change / unit
            points.append((min(max(seconds, start_s), stop_s) * 1e3 - start_s * 1e3, amount))
        memory.append(points)
    return Run(spans, memory)
