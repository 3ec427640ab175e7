"""What a rank holds, as stacked bars: measured, and beside it what theory says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from manyhands.plots import INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

PARTS = ("weights", "gradients", "states of the optimiser")
COLOURS = (0, 2, 3)  # ranks whose colours the parts have: dark, middle, light
WORDS = {"parts": PARTS, "theory": "theory", "held": "held by a rank, in $\\psi$"}


def table(measured: Mapping[str, Sequence[float]], theory: Mapping[str, Sequence[float]]) -> str:
    """The picture in letters: a line for each name, with what was measured and what theory says.

    It has what was measured of each part and of all, and theory's number of all.
    """
    lines = [
        "         "
        + "".join(f"{word:>11}" for word in ("weights", "gradients", "states", "all", "theory"))
    ]
    for name, parts in measured.items():
        lines.append(
            f"{name:<9}"
            + "".join(f"{value:>11.2f}" for value in (*parts, sum(parts), sum(theory[name])))
        )
    return "\n".join(lines)


@styled
def stacked(
    measured: Mapping[str, Sequence[float]],
    theory: Mapping[str, Sequence[float]],
    words: Words = WORDS,
    title: str = "what a rank holds, by stage: measured, and theory as outlines",
) -> Svg:
    """Stacked bars of what each name's parts take, and outlines where theory has them.

    `measured` and `theory` map a name to what its parts take, from the bottom up, all in one unit.
    Returns an `Svg`.
    """
    fig, ax = figure(height=3)
    for place, name in enumerate(measured):
        low = 0.0
        for part, (word, value) in enumerate(zip(words["parts"], measured[name], strict=True)):
            ax.bar(
                place,
                value,
                0.56,
                low,
                color=rank_colour(COLOURS[part]),
                label=None if place else word,
            )
            low += value
        low = 0.0
        for value in theory[name]:
            ax.bar(
                place,
                value,
                0.74,
                low,
                facecolor="none",
                edgecolor=INK,
                linestyle=(0, (3, 2)),
                linewidth=1.1,
                label=None if place or low else words["theory"],
            )
            low += value
    ax.set_xticks(range(len(measured)), list(measured))
    ax.set_ylabel(words["held"])
    ax.grid(True, axis="y")
    ax.legend(loc="upper right", fontsize=8)
    return svg(fig, title)
