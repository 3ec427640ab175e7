"""Time against size, both logarithmic: predicted, measured, and where two ways cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.plots import GREY, INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

WORDS = {
    "x": "bytes",
    "y": "seconds",
    "key": "line: predicted; mark: measured",
    "crossover": "{size} bytes",
}
MARKERS, LINES = ("o", "^", "s", "D"), ("-", (0, (5, 2)), (0, (1, 1.5)), "-.")


@styled
def crossover(
    predicted: Mapping[str, Callable[[Any], Any]],
    measured: Mapping[str, Mapping[int, float]],
    at: float | None = None,
    bands: Mapping[str, Callable[[Any], Any]] | None = None,
    words: Words = WORDS,
    title: str = "predicted and measured time against size",
) -> Svg:
    """A line for each way that is predicted, marks where it was measured.

    predicted : maps the name of a way to a function of the number of bytes (an array of them) that gives seconds.
        measured : maps names to {bytes: seconds}.
    at : the size at which two of them cross, drawn as a dotted line if it is above 0. bands : maps names to a function
        of the bytes that gives
    (lowest, highest) seconds. Returns an `Svg`.
    """
    fig, ax = figure(height=3.6)
    sizes = sorted({size for points in measured.values() for size in points})
    every = np.geomspace(sizes[0], sizes[-1], 100)
    for i, (way, model) in enumerate(predicted.items()):
        colour, points = rank_colour(i), measured.get(way, {})
        ax.plot(
            every,
            model(every),
            color=colour,
            linewidth=1.4,
            linestyle=LINES[i % len(LINES)],
            label=way,
        )
        if bands and way in bands:
            low, high = bands[way](every)
            ax.fill_between(every, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(
            list(points),
            list(points.values()),
            MARKERS[i % len(MARKERS)],
            color=colour,
            markeredgecolor=INK,
            markeredgewidth=0.4,
            markersize=6,
        )
    ax.set(xscale="log", yscale="log", xlabel=words["x"], ylabel=words["y"])
    if at:
        ax.axvline(at, color=GREY, linestyle=":", linewidth=1)
        ax.text(
            at,
            ax.get_ylim()[1],
            " " + words["crossover"].format(size=f"{at:,.0f}"),
            color=INK,
            fontsize=8,
            va="top",
        )
    ax.grid(True)
    ax.legend(loc="upper left")
    ax.text(0.99, 0.03, words["key"], transform=ax.transAxes, ha="right", color=GREY, fontsize=8)
    return svg(fig, title)


def crossover_table(
    predicted: Mapping[str, Callable[[Any], Any]], measured: Mapping[str, Mapping[int, float]]
) -> str:
    """The numbers of the picture, in ms: a line for each size.

    For each way it has measured / predicted = their ratio.
    """
    lines = ["     bytes" + "".join(f"{way + ' (ms)':>30}" for way in measured)]
    for size in next(iter(measured.values())):
        cells = []
        for way, points in measured.items():
            expected = float(predicted[way](size))
            cells.append(
                f"{points[size] * 1e3:.3g} / {expected * 1e3:.3g} = {points[size] / expected:.2f}"
            )
        lines.append(f"{size:>10}" + "".join(f"{cell:>30}" for cell in cells))
    return "\n".join(lines)
