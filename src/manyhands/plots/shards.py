"""Who sees which sample: workers against samples, and in which step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from manyhands.plots import (
    GREY,
    INK,
    PALE,
    RANK_COLOURS,
    figure,
    ink_on,
    rank_colour,
    styled,
    svg,
)

if TYPE_CHECKING:
    from matplotlib.patches import Rectangle

    from manyhands.plots import Svg, Words

WORDS = {
    "sample": "sample",
    "worker": "worker {rank}",
    "times": "times in all",
    "step": "number in a square: the step in which the worker sees the sample",
}


Steps = Sequence[Sequence[int]]  # a worker's batches of samples


def steps_of(steps: Steps) -> dict[int, list[int]]:
    """{sample: [steps, counted from 1, in which one worker sees it]}."""
    by_sample: dict[int, list[int]] = {}
    for number, batch in enumerate(steps, 1):
        for sample in batch:
            by_sample.setdefault(sample, []).append(number)
    return by_sample


def times(workers: Iterable[Steps], samples: int) -> list[int]:
    """How often each of the samples 0, 1, ... is seen by all workers together."""
    counts = [0] * samples
    for steps in workers:
        for sample, numbers in steps_of(steps).items():
            counts[sample] += len(numbers)
    return counts


def table(seen: Mapping[str, Sequence[Steps]], samples: int) -> str:
    """The picture in letters: a line for each worker, its batches one after the other.

    It also says which samples are not seen exactly once.
    """
    width = max(map(len, seen))
    lines: list[str] = []
    for policy, workers in seen.items():
        for rank, steps in enumerate(workers):
            head = policy if rank == 0 else ""
            lines.append(
                f"{head:<{width}}  worker {rank}: " + " ".join(str(batch) for batch in steps)
            )
        counts = times(workers, samples)
        twice, never = (
            [sample for sample, count in enumerate(counts) if test(count)]
            for test in (lambda c: c > 1, lambda c: c == 0)
        )
        wrong = [
            f"{word} {wrong_samples if len(wrong_samples) < samples else 'all'}"
            for word, wrong_samples in (("more than once:", twice), ("never:", never))
            if wrong_samples
        ]
        lines.append(f"{'':<{width}}  " + ("; ".join(wrong) or "each sample once"))
    return "\n".join(lines)


@styled
def who_holds(
    seen: Mapping[str, Sequence[Steps]],
    samples: int,
    words: Words = WORDS,
    title: str = "which worker sees which sample, for each way to share the data",
) -> Svg:
    """One panel for each way: workers against samples.

    A square says that the worker sees the sample, its number in which step.

    `seen` maps the name of a way to a list with one entry for each worker: its batches in the order
    of the steps, as lists of sample numbers from 0 to `samples` - 1. Below each panel stands how
    often a sample is seen by all workers together. Returns an `Svg`.
    """
    workers = max(map(len, seen.values()))
    fig, panels = figure(
        rows=len(seen), height=(0.3 * workers + 0.62) * len(seen) + 0.4, sharex=True, squeeze=False
    )
    for ax, (way, of_workers) in zip(panels[:, 0], seen.items(), strict=True):
        for rank, steps in enumerate(of_workers):
            for sample, numbers in steps_of(steps).items():
                ax.add_patch(_square(sample, rank, rank_colour(rank)))
                ax.text(
                    sample,
                    rank,
                    ", ".join(map(str, numbers)),
                    ha="center",
                    va="center",
                    color=ink_on(rank),
                    fontsize=8,
                )
        for sample, count in enumerate(times(of_workers, samples)):
            right = count == 1
            ax.text(
                sample,
                len(of_workers),
                count,
                ha="center",
                va="center",
                color=GREY if right else RANK_COLOURS[1],
                fontsize=8,
                fontweight="normal" if right else "bold",
            )
        labels = [words["worker"].format(rank=rank) for rank in range(len(of_workers))]
        ax.set_yticks(range(len(of_workers) + 1), [*labels, words["times"]])
        ax.set(xlim=(-0.6, samples - 0.4), ylim=(len(of_workers) + 0.5, -0.6), title=way)
        ax.tick_params(length=0)
        ax.hlines(
            [rank + 0.5 for rank in range(len(of_workers))],
            -0.6,
            samples - 0.4,
            color=PALE,
            linewidth=1,
        )
        ax.spines[:].set_visible(False)
    panels[-1, 0].set_xticks(range(samples))
    panels[-1, 0].set_xlabel(f"{words['sample']} ({words['step']})", color=INK)
    return svg(fig, title)


def _square(sample: float, rank: float, colour: str) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((sample - 0.43, rank - 0.4), 0.86, 0.8, facecolor=colour, edgecolor="none")
