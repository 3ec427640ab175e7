"""Workers that do not wait: stale gradients, weights that swing, and backup workers.

It shows whose gradient came when and how old it was, and the time to a target against backup
workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.plots import GREY, INK, figure, ink_on, rank_colour, styled, svg

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from manyhands.plots import Svg, Words

WORDS = {
    "worker": "worker {worker}",
    "time": "time (ms)",
    "weight": "weight",
    "step": "last change of it",
    "start": "start",
    "b": "backup workers of {machines} machines, b",
    "relative": "relative to b = 0",
    "step_s": "seconds of a step",
    "steps": "steps to the target",
    "time_s": "time to the target",
    "best": "best: b = {b}",
}


@styled
def schedule(
    steps: Sequence[Any],
    words: Words = WORDS,
    title: str = "which worker computed when, and how old its gradients were",
) -> Svg:
    """One lane for each worker; one bar for each gradient, from its pull to its push.

    The number in a bar is the gradient's staleness.

    `steps` are those of `manyhands.simulate.asynchrony` (worker, clock, start_s, stop_s, version,
    staleness). Returns an `Svg`.
    """
    workers = 1 + max(step.worker for step in steps)
    fig, ax = figure(height=0.7 + 0.42 * workers)
    for step in steps:
        ax.barh(
            step.worker,
            (step.stop_s - step.start_s) * 1e3,
            left=step.start_s * 1e3,
            height=0.72,
            color=rank_colour(1 + step.worker),
            edgecolor="white",
            linewidth=0.8,
        )
        ax.text(
            (step.start_s + step.stop_s) * 500,
            step.worker,
            str(step.staleness),
            ha="center",
            va="center",
            color=ink_on(1 + step.worker),
            fontsize=8,
        )
    ax.set(
        xlabel=words["time"],
        yticks=range(workers),
        yticklabels=[words["worker"].format(worker=worker) for worker in range(workers)],
        ylim=(workers - 0.4, -0.6),
    )
    ax.tick_params(axis="y", length=0)
    return svg(fig, title)


@styled
def spirals(
    ways: Mapping[str, ArrayLike],
    words: Words = WORDS,
    title: str = "the same learning rate with gradients of different ages",
) -> Svg:
    """One panel for each way: the weight to the right, its last change upwards.

    All are on the same axes, with a ring at the start and a dot at the end.

    `ways` maps names to the weights, one for each update. Returns an `Svg`.
    """
    fig, axes = figure(columns=len(ways), height=2.7, sharex=True, sharey=True, squeeze=False)
    for i, (ax, (name, weights)) in enumerate(zip(axes[0], ways.items(), strict=True)):
        path = np.asarray(weights, float)
        change = np.diff(path, prepend=path[0])
        ax.plot(path, change, "-", color=rank_colour(i), linewidth=0.9)
        ax.plot(path, change, ".", color=rank_colour(i), markersize=3.5)
        ax.plot(path[0], change[0], "o", color="white", markeredgecolor=INK, markersize=6)
        ax.plot(path[-1], change[-1], "o", color=rank_colour(i), markeredgecolor=INK, markersize=6)
        ax.set(title=name, xlabel=words["weight"])
        ax.grid(True)
        for spine in ax.spines.values():
            spine.set_color(GREY)
    axes[0, 0].set_ylabel(words["step"])
    return svg(fig, title)


@styled
def against_b(
    machines: int,
    step_s: ArrayLike,
    steps: ArrayLike,
    words: Words = WORDS,
    title: str = "time to a target against the number of backup workers",
) -> Svg:
    """Three lines over b = 0, 1, ...: seconds of a step, steps to the target, and their product.

    Each is relative to its value at b = 0. Returns an `Svg`.

    `step_s[b]` and `steps[b]` are numbers for b backups out of `machines`.
    """
    fig, ax = figure(height=3.0)
    waits, counts = np.asarray(step_s, float), np.asarray(steps, float)
    lines = {
        "step_s": waits / waits[0],
        "steps": counts / counts[0],
        "time_s": waits * counts / (waits[0] * counts[0]),
    }
    looks: dict[str, tuple[str, str, int, float]] = {
        "step_s": ("--", "s", 2, 1.3),
        "steps": (":", "^", 3, 1.5),
        "time_s": ("-", "o", 1, 2.2),
    }
    for name, values in lines.items():
        style, marker, colour, width = looks[name]
        ax.plot(
            values,
            style,
            marker=marker,
            markersize=4.5,
            markeredgecolor=INK,
            markeredgewidth=0.4,
            color=rank_colour(colour),
            linewidth=width,
            label=words[name],
        )
    best = int(np.argmin(lines["time_s"]))
    ax.axvline(best, color=GREY, linewidth=1, zorder=0)
    ax.text(
        best,
        0.02,
        " " + words["best"].format(b=best),
        color=INK,
        fontsize=8,
        transform=ax.get_xaxis_transform(),
    )
    ax.set(xlabel=words["b"].format(machines=machines), ylabel=words["relative"], ylim=(0, None))
    ax.grid(axis="y")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return svg(fig, title)


def against_b_table(step_s: Iterable[float], steps: Iterable[float]) -> str:
    """The numbers of the picture: a line for each b."""
    lines = ["  b   ms of a step   steps   ms to the target"]
    return "\n".join(
        [
            *lines,
            *(
                f"{b:>3}{1e3 * wait:>15.2f}{count:>8.1f}{1e3 * wait * count:>19.1f}"
                for b, (wait, count) in enumerate(zip(step_s, steps, strict=True))
            ),
        ]
    )
