"""Calls of ranks in the order in which they are done, and those that are never done.

They go from left to right; the latter are red.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from manyhands.plots import GREY, INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manyhands.plots import Svg, Words

RED, LAST = "#c81e1e", 24  # how many calls that were done are shown: the last ones
WORDS = {
    "rank": "rank {i}",
    "x": "calls in the order in which they are done",
    "earlier": "{n} calls before these",
}


@styled
def stuck(
    done: Sequence[tuple[str, Sequence[int], str]],
    waiting: Mapping[int, tuple[str, Sequence[int]]],
    ranks: Iterable[int],
    title: str = "calls that are never done",
    words: Words = WORDS,
) -> Svg:
    """Draw what was done and what never is.

    `done`: in order, for a collective (call, its ranks), for a message (call, (from, to)), each
    with a third part, "message" or "collective". `waiting`: {rank: (call, the ranks that it waits
    for)}. `ranks`: their numbers. A message is an arrow, a collective a line through its ranks;
    what never ends is red, with a dashed line to each rank that it waits for. Returns an `Svg`.
    """
    ranks = sorted(ranks)
    lanes, shown = {rank: lane for lane, rank in enumerate(ranks)}, done[-LAST:]
    fig, ax = figure(height=0.9 + 0.5 * len(ranks))
    for lane in lanes.values():
        ax.axhline(lane, color=GREY, linewidth=0.8, zorder=1)
    for column, (_, members, kind) in enumerate(shown):
        _done(ax, column, [lanes[rank] for rank in members], members, kind)
    end = len(shown) + 0.5
    for rank, (call, others) in waiting.items():
        ax.plot([end], [lanes[rank]], marker="X", markersize=9, color=RED, zorder=4)
        ax.annotate(
            call, (end, lanes[rank]), (9, 5), textcoords="offset points", color=RED, zorder=4
        )
        for other in others:
            if other in lanes:
                ax.annotate(
                    "",
                    (end, lanes[other]),
                    (end, lanes[rank]),
                    zorder=3,
                    arrowprops={
                        "arrowstyle": "->",
                        "color": RED,
                        "linestyle": "--",
                        "linewidth": 1.2,
                        "connectionstyle": "arc3,rad=0.25",
                        "shrinkA": 6,
                        "shrinkB": 6,
                    },
                )
    left = len(done) - len(shown)
    ax.set(
        yticks=range(len(ranks)),
        yticklabels=[words["rank"].format(i=rank) for rank in ranks],
        xticks=[],
        ylim=(len(ranks) - 0.4, -0.6),
        xlim=(-0.7, end + 1.5 + 0.1 * len(shown)),
        xlabel=words["x"] + (f" ({words['earlier'].format(n=left)})" if left else ""),
    )
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return svg(fig, title)


def _done(ax: Axes, column: int, at: Sequence[int], members: Sequence[int], kind: str) -> None:
    if kind == "message":
        ax.annotate(
            "",
            (column + 0.35, at[1]),
            (column - 0.35, at[0]),
            zorder=2,
            arrowprops={
                "arrowstyle": "-|>",
                "color": rank_colour(members[0]),
                "linewidth": 1.3,
                "shrinkA": 0,
                "shrinkB": 0,
                "mutation_scale": 9,
            },
        )
        return
    ax.plot([column] * len(at), at, color=INK, marker="o", markersize=4, linewidth=1.6, zorder=2)
