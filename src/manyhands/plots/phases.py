"""Where the time of a step goes: its phases as stacked bars, against the number of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyhands.plots import INK, figure, ink_on, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

Bars = Mapping[int, Mapping[str, float]]  # by the number of replicas and the phase
WORDS = {"x": "replicas", "y": "ms in a step"}
COLOURS = (3, 1, 0, 4, 7)  # one of the palette for each phase; neighbours differ in lightness


@styled
def phases(
    panels: Mapping[str, Bars],
    words: Words = WORDS,
    title: str = "phases of a step against the number of replicas",
) -> Svg:
    """One panel for each way, one bar for each number of replicas, one part for each phase.

    `panels` maps a panel's name to {replicas: {phase: ms}}; all bars have the same phases, first at
    the bottom. A part that is large enough has its time in it. Returns an `Svg`.
    """
    fig, axes = figure(columns=len(panels), height=3.2, squeeze=False)
    for ax, (name, bars) in zip(axes[0], panels.items(), strict=True):
        tallest = max(sum(bar.values()) for bar in bars.values())
        for x, bar in enumerate(bars.values()):
            bottom = 0.0
            for i, (phase, ms) in enumerate(bar.items()):
                colour = COLOURS[i % len(COLOURS)]
                ax.bar(
                    x,
                    ms,
                    0.7,
                    bottom,
                    color=rank_colour(colour),
                    edgecolor=INK,
                    linewidth=0.4,
                    label=None if x else phase,
                )
                if ms > 0.06 * tallest:
                    ax.text(
                        x,
                        bottom + ms / 2,
                        f"{ms:.1f}",
                        ha="center",
                        va="center",
                        color=ink_on(colour),
                        fontsize=8,
                    )
                bottom += ms
        ax.set(
            title=name,
            xlabel=words["x"],
            ylabel=words["y"],
            xticks=range(len(bars)),
            xticklabels=list(bars),
            ylim=(0, 1.05 * tallest),
        )
        ax.grid(axis="y")
    handles, labels = axes[0, -1].get_legend_handles_labels()
    fig.legend(handles[::-1], labels[::-1], loc="outside right center")
    return svg(fig, title)


def phases_table(panels: Mapping[str, Bars]) -> str:
    """The numbers of the picture: a line for each bar, ms for each phase, and their sum."""
    names = list(next(iter(next(iter(panels.values())).values())))
    widths = {name: max(len(name), 6) + 2 for name in names}
    first = max(map(len, panels))
    lines = [
        f"{'':<{first}} replicas"
        + "".join(f"{name:>{widths[name]}}" for name in names)
        + f"{'all':>9}"
    ]
    for panel, bars in panels.items():
        for n, bar in bars.items():
            lines.append(
                f"{panel:<{first}} {n:>8}"
                + "".join(f"{bar[name]:>{widths[name]}.2f}" for name in names)
                + f"{sum(bar.values()):>9.2f}"
            )
    return "\n".join(lines)
