"""The loss of a training that was killed and went on, over that of one which nobody disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyhands.plots import GREY, INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

WORDS = {
    "step": "step",
    "loss": "loss",
    "undisturbed": "undisturbed, {ranks} ranks",
    "killed": "killed",
    "twice": "done twice",
    "life": "on {ranks} ranks",
}
TITLE = "the loss through two kills, over that of the same training without"


@styled
def survived(
    undisturbed: Sequence[float],
    lives: Sequence[tuple[int, int, Sequence[float]]],
    ranks: int,
    words: Words = WORDS,
    title: str = TITLE,
) -> Svg:
    """`undisturbed`: losses by step, trained on `ranks` ranks.

    `lives`: one for each time it was started, (ranks, first step, losses); all but the last end by
    a kill. What a later life did again is shaded. Returns an `Svg`.
    """
    fig, ax = figure(height=3.0)
    ax.plot(
        range(len(undisturbed)),
        undisturbed,
        color="#c9cfd6",
        linewidth=5,
        label=words["undisturbed"].format(ranks=ranks),
    )
    for i, (world, first, losses) in enumerate(lives):
        steps = range(first, first + len(losses))
        ax.plot(
            steps,
            losses,
            color=rank_colour(i),
            linewidth=1.4,
            label=words["life"].format(ranks=world),
        )
        if i + 1 < len(lives):
            end, again = steps[-1], lives[i + 1][1]
            ax.axvspan(
                again - 0.5,
                end + 0.5,
                color="#f3dcda",
                linewidth=0,
                label=words["twice"] if i == 0 else None,
            )
            ax.plot(end, losses[-1], "x", color=INK, markersize=8, markeredgewidth=2)
            ax.annotate(
                words["killed"], (end, losses[-1]), (6, 8), textcoords="offset points", color=GREY
            )
    ax.set(xlabel=words["step"], ylabel=words["loss"], ylim=(0, None))
    ax.grid(True, axis="y")
    ax.legend(loc="upper right", fontsize=8)
    return svg(fig, title)
