"""Two ways to train on top of each other: curves that must coincide, and what is between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from manyhands.plots import GREY, INK, PALE, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from manyhands.plots import Svg, Words

WORDS = {
    "step": "step",
    "loss": "loss",
    "difference": "difference",
    "tolerance": "tolerance {value:g}",
    "zero": "0",
}


@styled
def coinciding(
    reference: tuple[str, ArrayLike],
    curves: Mapping[str, ArrayLike],
    tolerance: float,
    words: Words = WORDS,
    title: str = "loss curves on top of each other",
) -> Svg:
    """Above: the curves, the first one as a wide pale line.

    Below: how far each of the others is from it, step by step.

    `reference` is `(name, values)`; `curves` maps names to values, one for each step. The lower
    axis is logarithmic; its bottom line stands for exactly 0. A dotted line marks the `tolerance`;
    curves that leave it far behind are shown too. Returns an `Svg`.
    """
    name, values = reference
    values = np.asarray(values, float)
    gaps = {other: np.abs(np.asarray(curve, float) - values) for other, curve in curves.items()}
    smallest = [gap[gap > 0].min() for gap in gaps.values() if np.any(gap > 0)]
    ceiling = max([tolerance * 100, *(3 * gap.max() for gap in gaps.values())])
    floor = 10.0 ** np.floor(np.log10(min([*smallest, tolerance])) - 1)
    fig, (top, bottom) = figure(rows=2, height=3.6, sharex=True, height_ratios=(1.6, 1))
    steps = np.arange(1, len(values) + 1)
    top.plot(steps, values, color=PALE, linewidth=9, solid_capstyle="round", label=name)
    for i, (other, curve) in enumerate(curves.items()):
        look = {
            "color": rank_colour(i),
            "linestyle": ("-", (0, (4, 3)), (0, (1, 2)))[i % 3],
            "linewidth": 1.6,
        }
        top.plot(steps, curve, label=other, **look)
        bottom.plot(steps, np.maximum(gaps[other], floor), **look)
    bottom.axhline(tolerance, color=INK, linestyle=":", linewidth=1)
    bottom.text(
        steps[-1],
        tolerance,
        words["tolerance"].format(value=tolerance),
        ha="right",
        va="bottom",
        color=INK,
        fontsize=8,
    )
    bottom.set_yscale("log")
    bottom.set(xlabel=words["step"], ylabel=words["difference"], ylim=(floor / 2, ceiling))
    marks = 10.0 ** np.arange(np.log10(floor), np.log10(ceiling), 4)
    bottom.set_yticks(marks, [words["zero"], *(f"{mark:.0e}" for mark in marks[1:])])
    bottom.minorticks_off()
    bottom.grid(axis="y")
    top.set(ylabel=words["loss"], ylim=(0, None))
    top.legend(loc="upper right")
    for ax in (top, bottom):
        ax.spines["left"].set_color(GREY)
    return svg(fig, title)


def gap(one: ArrayLike, other: ArrayLike) -> float:
    """The largest difference between two curves."""
    return float(np.max(np.abs(np.asarray(one, float) - np.asarray(other, float))))
