"""Error against the batch, and one training on two clocks: epochs and steps.

The learner's own errors are shown beside published figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from manyhands.plots import GREY, INK, figure, rank_colour, styled, svg

if TYPE_CHECKING:
    from manyhands.plots import Svg, Words

# of a way and a batch: (mean, standard deviation)
Errors = Mapping[str, Mapping[int, tuple[float, float]]]
WORDS = {
    "batch": "images in a batch",
    "error": "error in %",
    "own": "measured here",
    "published": "published: {source}",
    "epochs": "epochs",
    "steps": "steps",
    "bars": "bars: standard deviation over runs",
}
LINES, MARKERS = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5))), ("o", "s", "^", "D")


@styled
def hockey_stick(
    own: Errors,
    published: Errors,
    source: str,
    words: Words = WORDS,
    title: str = "error against the batch, measured and published",
) -> Svg:
    """Two panels of errors against the batch, which share nothing but their kind of axes.

    Batches double to the right, errors in per cent grow upwards.

    `own` and `published` map the name of a way to train to {batch: (mean error, standard deviation
    over runs)}; a way with one batch is one mark. Names that are in both have one look. `source`
    says who has published. Returns an `Svg`.
    """
    fig, axes = figure(columns=2, height=3.3)
    names = list(dict.fromkeys([*own, *published]))
    heads = words["own"], words["published"].format(source=source)
    for ax, ways, head in zip(axes, (own, published), heads, strict=True):
        for name, points in ways.items():
            look, batches = names.index(name), sorted(points)
            means, spreads = zip(*(points[batch] for batch in batches), strict=True)
            ax.errorbar(
                batches,
                means,
                yerr=spreads,
                label=name,
                color=rank_colour(look),
                linestyle=LINES[look % 4],
                linewidth=1.4,
                capsize=2.5,
                elinewidth=0.9,
                marker=MARKERS[look % 4],
                markersize=4.5,
                markeredgecolor=INK,
                markeredgewidth=0.4,
            )
        every = sorted({batch for points in ways.values() for batch in points})
        ax.set_xscale("log", base=2)
        ax.set_xticks(
            every, [str(batch) if batch < 1024 else f"{batch // 1024}k" for batch in every]
        )
        ax.minorticks_off()
        ax.set(title=head, xlabel=words["batch"])
        ax.grid(True, axis="y")
        ax.legend(loc="upper left", fontsize=8)
    axes[0].set(ylabel=words["error"], ylim=(0, None))
    axes[1].set(ylim=(20, None))
    axes[0].text(0.02, 0.03, words["bars"], transform=axes[0].transAxes, color=GREY, fontsize=8)
    return svg(fig, title)


def hockey_table(ways: Errors) -> str:
    """The numbers of a panel: a line for each way, mean and standard deviation by batch."""
    every = sorted({batch for points in ways.values() for batch in points})
    width = max(map(len, ways)) + 2
    lines = ["batch".ljust(width) + "".join(f"{batch:>13}" for batch in every)]
    for name, points in ways.items():
        cells = [
            f"{points[batch][0]:.1f} ± {points[batch][1]:.1f}" if batch in points else ""
            for batch in every
        ]
        lines.append((name.ljust(width) + "".join(f"{cell:>13}" for cell in cells)).rstrip())
    return "\n".join(lines)


@styled
def two_clocks(
    ways: Mapping[str, Sequence[tuple[float, float, float]]],
    words: Words = WORDS,
    title: str = "one training against epochs and against steps",
) -> Svg:
    """The same curves twice: against the epochs seen, and against the steps taken.

    `ways` maps names to lists of (epoch, steps, error in per cent). Returns an `Svg`.
    """
    fig, axes = figure(columns=2, height=2.7, sharey=True)
    for look, (name, points) in enumerate(ways.items()):
        epochs, steps, errors = zip(*points, strict=True)
        for ax, x, label in zip(
            axes, (epochs, steps), (words["epochs"], words["steps"]), strict=True
        ):
            ax.plot(
                x,
                errors,
                label=name,
                color=rank_colour(look),
                linestyle=LINES[look % 4],
                linewidth=(3.2, 1.6)[look % 2],
                marker=MARKERS[look % 4],
                markersize=3.5,
            )
            ax.set(xlabel=label)
            ax.grid(True)
    axes[0].set(ylabel=words["error"])
    axes[1].legend(loc="upper right")
    return svg(fig, title)
