"""Who holds which part of a tensor on a mesh of ranks, and between whom something is summed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from manyhands.plots import GREY, INK, PALE, figure, ink_on, rank_colour, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manyhands.plots import Svg, Words


class Held(NamedTuple):
    """One tensor of a program under a layout.

    pieces: for each rank its rows and columns, as (first row, after the last row, first column,
    after the last column). sums: [(the ranks of a group, how many numbers they sum), ...].
    """

    name: str
    shape: Sequence[int]
    pieces: Sequence[tuple[int, int, int, int]]
    sums: Sequence[tuple[Sequence[int], int]]


WORDS = {"sum": "sum: {numbers}", "nothing": "nothing sent"}
GAP = 0.4  # between two outlines, where one whose tensor has the most rows is 1 high


def extent(indices: Iterable[Iterable[int]], columns: int) -> tuple[int, int, int, int]:
    """The rows and columns of a piece, from the positions of its numbers in the whole.

    Positions are counted row by row.
    """
    places = [place for row in indices for place in row]
    return (
        min(places) // columns,
        max(places) // columns + 1,
        min(place % columns for place in places),
        max(place % columns for place in places) + 1,
    )


def table(layouts: Mapping[str, Sequence[Held]], words: Words = WORDS) -> str:
    """The numbers of the picture as text: the shape that each rank holds, and what is summed."""
    lines = []
    for layout, tensors in layouts.items():
        for held in tensors:
            top, bottom, left, right = held.pieces[0]
            sums = _summed(held, words)
            lines.append(
                f"{layout:<16} {held.name:<2} {bottom - top} x {right - left:<2} of {held.shape[0]}"
                f" x {held.shape[1]:<2} on a rank  {sums}"
            )
    return "\n".join(lines)


@styled
def who_holds_what(
    layouts: Mapping[str, Sequence[Held]],
    mesh_shape: Sequence[int],
    words: Words = WORDS,
    title: str = "who holds what on the mesh",
) -> Svg:
    """A row for each layout, a panel for each tensor: the ranks and their pieces.

    The ranks are where they stand on the mesh, each with the outline of the whole tensor and, in
    the rank's colour, its piece. A line joins ranks that sum their pieces.

    `layouts` maps the name of a layout to a list of `Held`; the ranks go over the mesh row by row.
    Returns an `Svg`.
    """
    columns = max(map(len, layouts.values()))
    fig, axes = figure(len(layouts), columns, height=1.55 * len(layouts), squeeze=False)
    for row, (layout, tensors) in zip(axes, layouts.items(), strict=True):
        unit = 1 / max(held.shape[0] for held in tensors)  # one scale in a row
        for ax, held in zip(row, tensors, strict=False):  # the longest row has as many as axes
            _panel(ax, held, mesh_shape, unit, words)
            ax.set_title(f"{layout}: {held.name}" if held is tensors[0] else held.name, fontsize=9)
    return svg(fig, title)


def _panel(ax: Axes, held: Held, mesh_shape: Sequence[int], unit: float, words: Words) -> None:
    from matplotlib.patches import Rectangle

    high, wide = (size * unit for size in held.shape)
    middles = {}
    for rank, (top, bottom, left, right) in enumerate(held.pieces):
        row, column = divmod(rank, mesh_shape[1])
        x, y = column * (wide + GAP), row * (high + GAP)
        middles[rank] = x + wide / 2, y + high / 2
        ax.add_patch(Rectangle((x, y), wide, high, facecolor=PALE, edgecolor=GREY, linewidth=0.6))
        piece = Rectangle(
            (x + left * unit, y + top * unit),
            (right - left) * unit,
            (bottom - top) * unit,
            facecolor=rank_colour(rank),
            edgecolor=INK,
            linewidth=0.6,
        )
        ax.add_patch(piece)
        x, y = piece.get_center()
        ax.text(x, y, str(rank), ha="center", va="center", fontsize=8, color=ink_on(rank))
    for ranks, _ in held.sums:
        for rank_a, rank_b in pairwise(ranks):
            _join(ax, middles[rank_a], middles[rank_b], wide, high)
    ax.set(
        xlim=(-0.1, mesh_shape[1] * (wide + GAP) - GAP + 0.1),
        aspect="equal",
        xticks=[],
        yticks=[],
        ylim=(mesh_shape[0] * (high + GAP) - GAP + 0.1, -0.1),
    )
    ax.set_xlabel(_summed(held, words), fontsize=8)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _join(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], wide: float, high: float
) -> None:
    """An arrow with two heads from the border of one outline to that of its neighbour."""
    (x1, y1), (x2, y2) = start, end
    half_x, half_y = (wide / 2, 0) if x1 != x2 else (0, high / 2)
    ax.annotate(
        "",
        (x1 + half_x, y1 + half_y),
        (x2 - half_x, y2 - half_y),
        arrowprops={
            "arrowstyle": "<->",
            "color": INK,
            "linewidth": 1.2,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def _summed(held: Held, words: Words) -> str:
    numbers = sorted({numbers for _, numbers in held.sums})
    return (
        words["sum"].format(numbers=", ".join(map(str, numbers))) if numbers else words["nothing"]
    )
