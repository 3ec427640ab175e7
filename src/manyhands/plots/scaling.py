"""Efficiency against the number of ranks, and where the time of a step goes.

The efficiency is predicted and measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyhands.plots import INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words
    from manyhands.simulate.training_step import Step

LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), "-.", (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "^", "s", "D", "v")
PARTS = ("computing", "bubble", "exposed")
COLOURS = (0, 3, 1)  # ranks whose colours the parts have: dark, bright, middle
WORDS = {
    "x": "ranks",
    "y": "efficiency",
    "key": "line: predicted; mark: measured",
    "parts": "part of a step",
    "names": ("computing", "waiting in the pipeline", "waiting for messages or slower ranks"),
}


@styled
def efficiency(
    predicted: Mapping[str, Mapping[int, float]],
    measured: Mapping[str, Mapping[int, float]] | None = None,
    words: Words = WORDS,
    title: str = "efficiency against the number of ranks",
) -> Svg:
    """`predicted` and `measured` map names to {ranks: efficiency}, 1 being perfect.

    Returns an `Svg`.
    """
    fig, ax = figure(height=3.2)
    for i, (name, points) in enumerate(predicted.items()):
        colour, marks = rank_colour(i), (measured or {}).get(name, {})
        ax.plot(
            list(points),
            list(points.values()),
            color=colour,
            linewidth=1.5,
            linestyle=LINES[i % len(LINES)],
            label=name,
        )
        ax.plot(
            list(marks),
            list(marks.values()),
            MARKERS[i % len(MARKERS)],
            color=colour,
            markeredgecolor=INK,
            markeredgewidth=0.4,
            markersize=7,
        )
    ranks = sorted({p for points in predicted.values() for p in points})
    ax.set(xscale="log", xlabel=words["x"], ylabel=words["y"], ylim=(0, 1.08))
    ax.set_xticks(ranks, [f"{p:,}" for p in ranks], fontsize=8)
    ax.minorticks_off()
    ax.grid(True)
    ax.legend(loc="lower left", fontsize=8)
    if measured:
        ax.text(0.99, 0.95, words["key"], transform=ax.transAxes, ha="right", va="top", fontsize=8)
    return svg(fig, title)


@styled
def bars(
    steps: Mapping[str, Step], words: Words = WORDS, title: str = "where the time of a step goes"
) -> Svg:
    """`steps` maps a name to a `training_step.Step`: a bar for each, cut in its three parts.

    Returns an `Svg`.
    """
    fig, ax = figure(height=0.9 + 0.36 * len(steps))
    for place, step in enumerate(steps.values()):
        left = 0.0
        for part, colour, word in zip(PARTS, COLOURS, words["names"], strict=True):
            width = getattr(step, part)
            ax.barh(
                place, width, 0.62, left, color=rank_colour(colour), label=None if place else word
            )
            left += width
    ax.set_yticks(range(len(steps)), list(steps))
    ax.invert_yaxis()
    ax.set(xlabel=words["parts"], xlim=(0, 1))
    fig.legend(loc="outside upper center", ncols=3, fontsize=8)
    return svg(fig, title)


def bars_table(steps: Mapping[str, Step]) -> str:
    """The numbers of the bars: seconds of a step, and its parts in per cent."""
    lines = [f"{'':<26}{'ms':>9}{'computing':>11}{'bubble':>9}{'exposed':>9}"]
    for name, step in steps.items():
        lines.append(
            f"{name:<26}{step.seconds * 1e3:>9.1f}{step.computing:>11.1%}{step.bubble:>9.1%}{step.exposed:>9.1%}"
        )
    return "\n".join(lines)
