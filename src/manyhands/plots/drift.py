"""The ways of several ranks through the space of all weights, seen in a plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from manyhands.plots import GREY, INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from manyhands.plots import Svg, Words

WORDS = {
    "along": "along the way of one process",
    "across": "across",
    "rank": "rank {rank}",
    "start": "start",
    "end": "end",
}
LINES = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (1, 1.5)))


@styled
def drift(
    ways: Mapping[str, ArrayLike],
    serial: tuple[ArrayLike, ArrayLike],
    words: Words = WORDS,
    title: str = "ways of the ranks through the space of weights",
) -> Svg:
    """One panel for each way to train, in the same scale, with one line for each rank.

    A line goes from a ring (start) to a dot (end).

    `ways` maps names to arrays [ranks, points, weights]; `serial` is `(start, end)` of one process,
    each [weights]. All panels show the same direction to the right, from `start` to `end`; upwards,
    each shows the direction in which its own ranks differ most. Distances in the plane are never
    larger than the real ones. Returns an `Svg`.
    """
    fig, axes = figure(height=2.7, columns=len(ways), sharex=True, sharey=True, squeeze=False)
    for ax, (name, paths) in zip(axes[0], ways.items(), strict=True):
        for rank, points in enumerate(plane(np.asarray(paths, float), *serial)):
            look = {
                "color": rank_colour(rank),
                "linewidth": 4.2 - 0.9 * (rank % 4),
                "linestyle": LINES[rank % len(LINES)],
            }
            ax.plot(*points.T, label=words["rank"].format(rank=rank), zorder=2 + rank, **look)
            ax.plot(
                *points[0],
                "o",
                color="white",
                markeredgecolor=rank_colour(rank),
                markersize=6,
                zorder=9,
            )
            ax.plot(
                *points[-1],
                "o",
                color=rank_colour(rank),
                markeredgecolor=INK,
                markeredgewidth=0.4,
                markersize=5,
                zorder=9,
            )
        ax.set(title=name, xlabel=words["along"])
        ax.grid(True)
        for spine in ax.spines.values():
            spine.set_color(GREY)
    axes[0, 0].set_ylabel(words["across"])
    axes[0, -1].legend(loc="upper right", fontsize=7.5, handlelength=2.6)
    return svg(fig, title)


def plane(paths: np.ndarray, start: ArrayLike, end: ArrayLike) -> np.ndarray:
    """[ranks, points, 2]: how far along the way from `start` to `end`, and across it.

    Across is where the ranks differ most or, if they do not differ, where they turn. The numbers
    have six decimals.
    """
    origin = np.asarray(start, float)
    whole = np.asarray(end, float) - origin
    along = whole / np.linalg.norm(whole)
    moved = paths - origin
    rest = moved - (moved @ along)[..., None] * along
    apart = rest - rest.mean(0, keepdims=True)
    spread = apart if np.abs(apart).max() > 1e-6 else rest - rest.mean((0, 1))
    across = np.linalg.svd(spread.reshape(-1, spread.shape[-1]), full_matrices=False)[2][0]
    across = across * np.sign((moved @ across)[-1].sum() or 1)
    return np.stack([moved @ along, moved @ across], axis=-1).round(6)  # beyond that, runs differ


def apart(paths: ArrayLike) -> np.ndarray:
    """The largest distance of a rank from rank 0, for each point: [points]."""
    points = np.asarray(paths, float)
    return np.linalg.norm(points - points[:1], axis=-1).max(0)
