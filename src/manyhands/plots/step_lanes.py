"""One step of training on all ranks: what each does when, and its messages below.

A message is shown from when to when it is under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from manyhands.plots import GREY, INK, PALE, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

WORDS = {
    "time": "time (ms)",
    "rank": "rank {rank}",
    "forward": "forward",
    "backward": "backward",
    "legend": (
        "dark: forward; paler: backward; palest: optimiser; hatched: waits for the next batch; "
        "grey below: messages under way"
    ),
}
_WHITE = {"forward": 0.0, "backward": 0.45, "step": 0.75}  # so much white in the rank's colour


Lanes = Mapping[int, Sequence[tuple[str, float, float]]]  # by rank: [(kind, start_ms, stop_ms)]


@styled
def step_lanes(
    lanes: Lanes, words: Words = WORDS, title: str = "one step of training, by rank"
) -> Svg:
    """Draw what each rank does in a step, and its messages below.

    `lanes` is {rank: [(kind, start_ms, stop_ms)]}; kind is "input", "forward", "backward", "step"
    or "message". Returns an `Svg`.
    """
    fig, ax = figure(height=0.9 + 0.55 * len(lanes))
    for place, (rank, spans) in enumerate(lanes.items()):
        for kind, start_ms, stop_ms in spans:
            low = kind == "message"
            ax.barh(
                place + (0.33 if low else -0.08),
                stop_ms - start_ms,
                left=start_ms,
                height=0.16 if low else 0.56,
                color=GREY if low else PALE if kind == "input" else _mixed(rank, _WHITE[kind]),
                edgecolor=INK,
                linewidth=0.3 if low else 0.6,
                hatch="///" if kind == "input" else None,
            )
            if kind in ("forward", "backward") and stop_ms - start_ms > _end(lanes) / 12:
                ax.text(
                    (start_ms + stop_ms) / 2,
                    place - 0.08,
                    words[kind],
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if kind == "forward" and rank % 8 not in (3, 6, 7) else INK,
                    clip_on=True,
                )
    ax.set(
        yticks=range(len(lanes)),
        yticklabels=[words["rank"].format(rank=rank) for rank in lanes],
        ylim=(len(lanes) - 0.4, -0.5),
        xlabel=words["time"],
        xlim=(0, _end(lanes) * 1.01),
    )
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    fig.supxlabel(words["legend"], fontsize=7, color=INK)
    return svg(fig, title)


def _end(lanes: Lanes) -> float:
    return max(stop_ms for spans in lanes.values() for _, _, stop_ms in spans)


def _mixed(rank: int, white: float) -> list[float]:
    return [(1 - white) * int(rank_colour(rank)[k : k + 2], 16) / 255 + white for k in (1, 3, 5)]


def table(lanes: Lanes) -> str:
    """The numbers of the picture as text: by rank, milliseconds of each kind."""
    kinds = ("input", "forward", "backward", "step", "message")
    lines = [f"{'':<8}" + "".join(f"{kind:>10}" for kind in kinds)]
    for rank, spans in lanes.items():
        sums = [
            sum(stop_ms - start_ms for name, start_ms, stop_ms in spans if name == kind)
            for kind in kinds
        ]
        lines.append(f"{f'rank {rank}':<8}" + "".join(f"{ms:>10.1f}" for ms in sums))
    return "\n".join(lines)
