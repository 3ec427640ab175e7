"""A step of training as bars on a time axis: computing, and messages under way.

There are bars of what each rank computes, and of when its messages are under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from manyhands.plots import GREY, INK, PALE, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manyhands.plots import Svg, Words


class Span(NamedTuple):
    """A bar."""

    start_ms: float
    stop_ms: float
    label: str


Tracks = Mapping[str, Mapping[str, Sequence[tuple[float, float, str]]]]  # of a way and a lane

WORDS = {"compute": "compute", "network": "network", "time": "time (ms)"}


@styled
def timeline(
    tracks: Tracks, rank: int = 0, words: Words = WORDS, title: str = "timeline of one step"
) -> Svg:
    """Draw one pair of lanes per track, all on the same time axis.

    `tracks` maps the name of a way of training to `{"compute": [Span, ...], "network": [Span,
    ...]}`; times are in ms from the start of that step (plain tuples will do). Bars of one lane
    that overlap in time stand below each other. A dotted line marks where each step ends. Returns
    an `Svg`.
    """
    fig, axes = figure(
        height=0.55 + 1.15 * len(tracks), rows=len(tracks), sharex=True, squeeze=False
    )
    for ax, (name, lanes) in zip(axes[:, 0], tracks.items(), strict=True):
        for lane, top, tall in (("compute", 0.0, 0.8), ("network", 1.0, 1.2)):
            spans = [Span(*span) for span in lanes[lane]]
            places = rows_of(spans)
            for i, (span, row) in enumerate(zip(spans, places, strict=True)):
                height = tall / (1 + max(places))
                _bar(ax, top + height * (row + 0.5), height, span, _fill(lane, i, rank))
        end = max(stop_ms for lane in lanes.values() for _, stop_ms, _ in lane)
        ax.axvline(end, color=INK, linestyle=":", linewidth=1)
        ax.set(
            title=name,
            yticks=[0.4, 1.6],
            yticklabels=[words["compute"], words["network"]],
            ylim=(2.35, -0.15),
            xlim=(0, None),
        )
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
    axes[-1, 0].set_xlabel(words["time"])
    return svg(fig, title)


def rows_of(spans: Iterable[Span]) -> list[int]:
    """For each span the first row that is free when it starts.

    The spans are in order of their starts.
    """
    free_at: list[float] = []
    rows: list[int] = []
    for span in spans:
        row = next(
            (row for row, free_ms in enumerate(free_at) if free_ms <= span.start_ms), len(free_at)
        )
        free_at[row : row + 1] = [span.stop_ms]
        rows.append(row)
    return rows


def _fill(lane: str, i: int, rank: int) -> tuple[str, str]:
    """The rank's own colour for what it computes; two greys for the messages.

    The greys take turns, so that neighbours stay apart.
    """
    if lane == "compute":
        return rank_colour(rank), "white"
    return (PALE, INK) if i % 2 == 0 else (GREY, "white")


def _bar(ax: Axes, y: float, height: float, span: Span, colours: tuple[str, str]) -> None:
    fill, ink = colours
    width = span.stop_ms - span.start_ms
    ax.barh(y, width, left=span.start_ms, height=height, color=fill, edgecolor=INK, linewidth=0.6)
    ax.text(
        span.start_ms + width / 2,
        y,
        span.label,
        ha="center",
        va="center",
        color=ink,
        fontsize=8 if height > 0.5 else 6.5,
        clip_on=True,
    )


def table(tracks: Tracks) -> str:
    """The numbers of the picture as text: one line per bar, times in ms."""
    lines = [f"{'':<12} {'lane':<8} {'what':<12} {'from ms':>8} {'to ms':>8}"]
    for name, lanes in tracks.items():
        for lane, spans in lanes.items():
            lines += [
                f"{name:<12} {lane:<8} {label:<12} {start_ms:>8.1f} {stop_ms:>8.1f}"
                for start_ms, stop_ms, label in spans
            ]
    return "\n".join(lines)
