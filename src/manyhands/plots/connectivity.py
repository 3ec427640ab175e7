"""Which output channel of a layer depends on which input channel, and what moving data costs.

What is moved are the layer's activations or gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyhands.plots import GREY, INK, PALE, figure, ink_on, rank_colour, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from manyhands.plots import Svg, Words

WORDS = {"x": "input channel", "y": "output channel"}
TRAFFIC_WORDS = {
    "x": "side of the image (pixels)",
    "y": "bytes sent in one step, all ranks together",
    "formula": "line: formula; mark: measured",
}
MARKERS = ("o", "s", "^", "D")
NOBODY = -1


@styled
def connectivity(
    panels: Mapping[str, ArrayLike],
    words: Words = WORDS,
    title: str = "which outputs react to which input",
) -> Svg:
    """One square for each pair of channels, in the colour of the rank whose weights join them.

    It is white where the output does not react.

    `panels` maps the name of a layer to a matrix [output channels, input channels] of rank numbers,
    -1 where there is no reaction. The number of the rank stands in its square. Returns an `Svg`.
    """
    matrices = {name: np.asarray(matrix, int) for name, matrix in panels.items()}
    fig, axes = figure(columns=len(matrices), height=2.65, squeeze=False)
    for ax, (name, matrix) in zip(axes[0], matrices.items(), strict=True):
        rows, columns = matrix.shape
        for (row, column), rank in np.ndenumerate(matrix):
            _square(ax, column, row, rank)
        ax.set(
            title=name,
            xlim=(-0.5, columns - 0.5),
            ylim=(rows - 0.5, -0.5),
            xticks=range(columns),
            yticks=range(rows),
            aspect="equal",
            xlabel=words["x"],
        )
        ax.tick_params(length=0, labelsize=7)
    axes[0, 0].set_ylabel(words["y"])
    return svg(fig, title)


def _square(ax: Axes, column: int, row: int, rank: int) -> None:
    from matplotlib.patches import Rectangle

    fill = "white" if rank == NOBODY else rank_colour(rank)
    ax.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5),
            1,
            1,
            facecolor=fill,
            edgecolor=PALE if rank == NOBODY else INK,
            linewidth=0.5,
        )
    )
    if rank != NOBODY:
        ax.text(column, row, str(rank), ha="center", va="center", fontsize=7, color=ink_on(rank))


def table(panels: Mapping[str, ArrayLike]) -> str:
    """The numbers of the picture as text, side by side: a row for each output channel.

    A dot stands where it does not react.
    """
    blocks = []
    for name, matrix in panels.items():
        rows = [
            " ".join("." if rank == NOBODY else str(rank) for rank in row)
            for row in np.asarray(matrix, int).tolist()
        ]
        width = max(map(len, [name, *rows]))
        blocks.append([line.ljust(width) for line in [name, *rows]])
    height = max(map(len, blocks))
    blocks = [block + [" " * len(block[0])] * (height - len(block)) for block in blocks]
    return "\n".join("   ".join(lines).rstrip() for lines in zip(*blocks, strict=True))


@styled
def traffic(
    sides: Sequence[int],
    measured: Mapping[str, Sequence[float]],
    formula: Mapping[str, Callable[[float], float]],
    words: Words = TRAFFIC_WORDS,
    title: str = "bytes against image size",
) -> Svg:
    """Bytes of one step against the side of the image, on logarithmic axes.

    `measured` maps a way of cutting to one number for each of `sides`; `formula` maps the same ways
    to a function of the side, drawn as a line through all sizes. Returns an `Svg`.
    """
    fig, ax = figure(height=3.4)
    smooth = np.geomspace(min(sides), max(sides), 60)
    for i, (way, values) in enumerate(measured.items()):
        colour = rank_colour(i)
        ax.plot(
            smooth,
            [formula[way](side) for side in smooth],
            color=colour,
            linewidth=1.4,
            linestyle=("-", "--", "-.", ":")[i % 4],
        )
        ax.plot(
            sides,
            values,
            MARKERS[i % len(MARKERS)],
            color=colour,
            markeredgecolor=INK,
            markeredgewidth=0.4,
            markersize=7,
            label=way,
        )
    ax.set(xscale="log", yscale="log", xlabel=words["x"], ylabel=words["y"])
    ax.set_xticks(sides, [str(side) for side in sides])
    ax.minorticks_off()
    ax.grid(True)
    ax.legend(loc="upper left")
    ax.text(
        0.99, 0.03, words["formula"], transform=ax.transAxes, ha="right", color=GREY, fontsize=8
    )
    return svg(fig, title)


def traffic_table(
    sides: Sequence[int],
    measured: Mapping[str, Sequence[float]],
    formula: Mapping[str, Callable[[float], float]],
) -> str:
    """The numbers of the picture: for each side and way the bytes measured, and the formula's."""
    lines = [f"{'side':>4}  " + "".join(f"{way:>24}" for way in measured)]
    for i, side in enumerate(sides):
        cells = [f"{values[i]:,} / {formula[way](side):,.0f}" for way, values in measured.items()]
        lines.append(f"{side:>4}  " + "".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)
