"""Replicas: how a step goes through them, and what a wrongly scaled gradient becomes.

The latter depends on the number of replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyhands.plots import GREY, INK, PALE, figure, ink_on, rank_colour, styled, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from manyhands.plots import Svg, Words

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

STEP_WORDS = {
    "batch": "global batch",
    "examples": "{n} of {all}",
    "replica": "replica {i}",
    "gradient": "gradient",
    "sum": "sum over\nreplicas",
    "update": "same update\non every copy",
}
SCALING_WORDS = {
    "wrong": "loss divided by the replica's own batch",
    "right": "loss divided by the global batch",
    "x": "gradient on one device",
    "y": "gradient summed over replicas",
    "replicas": "{n} replicas",
    "replica": "1 replica",
}


@styled
def gradient_scaling(
    one: ArrayLike,
    wrong: Mapping[int, ArrayLike],
    right: Mapping[int, ArrayLike],
    words: Words = SCALING_WORDS,
    points: int = 48,
    title: str = "gradients against one device's",
) -> Svg:
    """Each point is one weight: across, its gradient on one device; up, its gradient over replicas.

    The latter is summed over the replicas.

    `one` is an array; `wrong` and `right` map a number of replicas to an array of the same shape.
    At most `points` weights are drawn, spread evenly over the values. A thin line of slope n stands
    behind the points of n replicas. Returns an `Svg`.
    """
    one = np.asarray(one).ravel()
    order = np.argsort(one, kind="stable")
    order = order[np.unique(np.searchsorted(one[order], np.linspace(one.min(), one.max(), points)))]
    reach = np.abs(one).max() * 1.1
    fig, axes = figure(columns=2, height=3.1, sharex=True, sharey=True)
    for ax, name, gradients in zip(axes, ("wrong", "right"), (wrong, right), strict=True):
        for i, (replicas, gradient) in enumerate(gradients.items()):
            values = np.asarray(gradient).ravel()
            slope = float(values @ one / (one @ one))
            ax.plot(
                [-reach, reach],
                [-slope * reach, slope * reach],
                color=rank_colour(i),
                linewidth=0.8,
            )
            label = words["replica"] if replicas == 1 else words["replicas"].format(n=replicas)
            ax.plot(
                one[order],
                values[order],
                MARKERS[i % len(MARKERS)],
                markersize=8 - 2 * i,
                label=label,
                markerfacecolor=rank_colour(i),
                markeredgecolor=INK,
                markeredgewidth=0.4,
            )
        ax.set(title=words[name], xlabel=words["x"])
        ax.grid(True)
    axes[0].set_ylabel(words["y"])
    axes[0].legend(loc="upper left")
    return svg(fig, title)


@styled
def replicated_step(
    shards: Sequence[int],
    words: Words = STEP_WORDS,
    title: str = "one step of training on several replicas",
) -> Svg:
    """One global batch and its way through the replicas of a step.

    It is cut into `shards` (examples per replica); then come each replica's gradient, their sum,
    and one update on every copy.

    Returns an `Svg`.
    """
    n = len(shards)
    fig, ax = figure(height=0.75 * n + 0.55)
    ax.set(xlim=(-0.05, 10.6), ylim=(n - 0.2, -0.75))
    ax.axis("off")
    ax.text(0.8, -0.55, words["batch"], ha="center", va="center")
    for i, examples in enumerate(shards):
        middle = i + 0.3
        _box(
            ax,
            0,
            middle,
            1.6,
            1.0,
            words["examples"].format(n=examples, all=sum(shards)),
            PALE,
            INK,
        )
        _arrow(ax, 1.65, middle, 2.55, middle)
        _box(ax, 2.6, middle, 1.7, 0.72, words["replica"].format(i=i), rank_colour(i), ink_on(i))
        _arrow(ax, 4.35, middle, 5.95, n / 2 - 0.2)
        _arrow(ax, 7.45, n / 2 - 0.2, 8.75, middle)
        _box(ax, 8.8, middle, 1.7, 0.72, words["replica"].format(i=i), rank_colour(i), ink_on(i))
    ax.text(4.95, -0.55, words["gradient"], ha="center", va="center")
    _box(ax, 6.0, n / 2 - 0.2, 1.4, 1.1, words["sum"], "white", INK)
    ax.text(9.65, -0.55, words["update"], ha="center", va="center")
    return svg(fig, title)


def _box(
    ax: Axes,
    left: float,
    middle: float,
    width: float,
    height: float,
    text: str,
    fill: str,
    ink: str,
) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle(
            (left, middle - height / 2), width, height, facecolor=fill, edgecolor=INK, linewidth=0.6
        )
    )
    ax.text(left + width / 2, middle, text, ha="center", va="center", color=ink, fontsize=8.5)


def _arrow(ax: Axes, x0: float, y0: float, x1: float, y1: float) -> None:
    ax.annotate(
        "", (x1, y1), (x0, y0), arrowprops={"arrowstyle": "-|>", "color": GREY, "linewidth": 1}
    )
