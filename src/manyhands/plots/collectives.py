"""What the busiest rank sends in a collective, against the number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from manyhands.plots import GREY, INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

Curves = Mapping[str, Mapping[int, float]]
Formulas = Mapping[str, Callable[[int], float]]
WORDS = {
    "x": "ranks",
    "y": "bytes that the busiest rank sends, in tensors",
    "formula": "line: formula; mark: measured",
}
MARKERS, LINES = ("o", "s", "^", "D", "v"), ("-", (0, (5, 2)), "-", (0, (1, 1.5)), "-.")


@styled
def busiest(
    measured: Curves,
    formulas: Formulas,
    ranks_to: int = 16,
    words: Words = WORDS,
    title: str = "bytes of the busiest rank against the number of ranks",
) -> Svg:
    """One line for each way: marks where it was measured, and a formula's line.

    The line goes up to `ranks_to` ranks.

    `measured` maps the name of a way to {number of ranks: bytes of the busiest rank / bytes of the
    tensor}; `formulas` maps the same names to a function of the number of ranks. Returns an `Svg`.
    """
    fig, ax = figure(height=3.4)
    every = np.arange(2, ranks_to + 1)
    for i, (way, points) in enumerate(measured.items()):
        colour = rank_colour(i)
        ax.plot(
            every,
            [formulas[way](int(p)) for p in every],
            color=colour,
            linewidth=1.4,
            linestyle=LINES[i % len(LINES)],
        )
        ax.plot(
            list(points),
            list(points.values()),
            MARKERS[i % len(MARKERS)],
            color=colour,
            markeredgecolor=INK,
            markeredgewidth=0.4,
            markersize=8 - i,
            label=way,
        )
    ax.set(xlabel=words["x"], ylabel=words["y"], xticks=every[::2], ylim=(0, None))
    ax.grid(True)
    ax.legend(loc="upper left")
    ax.text(
        0.99, 0.03, words["formula"], transform=ax.transAxes, ha="right", color=GREY, fontsize=8
    )
    return svg(fig, title)


def busiest_table(measured: Curves, formulas: Formulas, more: Iterable[int] = ()) -> str:
    """The numbers of the picture: a line for each number of ranks, measured / formula.

    For the numbers of ranks in `more` it has the formula alone.
    """
    lines = ["ranks" + "".join(f"{way:>16}" for way in measured)]
    for p in [*next(iter(measured.values())), *more]:
        cells = [
            (f"{points[p]:.3f} / " if p in points else "") + f"{formulas[way](p):.3f}"
            for way, points in measured.items()
        ]
        lines.append(f"{p:>5}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)
