"""Each entry that comes with a challenge of the hackathon, on the five public seeds.

`python -m benchmarks.ladders [CHALLENGE ...]` gives a row of docs/HACKATHON.md for each, and the
picture of the trade-off, `trade_off.svg` beside the entries.
"""

import statistics
import sys
import time

import matplotlib

from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.judge.judging import public_seeds
from manyhands.hackathon.judge.one_run import one_run
from manyhands.hackathon.judge.sandboxes import Sandboxes

from . import SMOKE, few

ACROSS = {  # challenge -> (what its score is paid with, how that is taken from a run)
    "slow_links": ("MB sent, all ranks", lambda run: sum(run.sent_bytes) / 1e6),
    "lame_rank": ("gradients, all ranks", lambda run: sum(run.gradients)),
    "does_not_fit": ("KiB of memory, the rank with most", lambda run: max(run.most_bytes) / 1024),
    "big_batch": ("gradients, all ranks", lambda run: sum(run.gradients)),
}


def main(names):
    """Judge the entries of these challenges, or of all, and print their rows."""
    for name in names or CHALLENGES:
        challenge, points = CHALLENGES[name], []
        with Sandboxes(challenge.ranks) as sandboxes:
            entries = (
                challenge.folder / "baseline.py",
                *sorted(challenge.folder.glob("ladder/*.py")),
            )
            for path in entries[-few(len(entries)) :]:
                began = time.monotonic()
                runs = [
                    one_run(challenge, sandboxes, path.read_text(), seed)[0]
                    for seed in public_seeds()[: few(5)]
                ]
                problems = [run.problem for run in runs if run.problem]
                if problems:
                    sys.exit(f"{path}: {problems[0]}")
                score = statistics.median(getattr(run, challenge.score) for run in runs)
                paid = statistics.median(map(ACROSS[name][1], runs))
                points.append((path.stem, paid, score))
                least = min(run.accuracy for run in runs)
                print(
                    f"{name} {path.stem}: {score:.4g} {challenge.unit}, {paid:.4g} "
                    f"{ACROSS[name][0]}, accuracy from {least:.3f}, processor "
                    f"{max(max(run.processor_s) for run in runs):.1f} s; judged in "
                    f"{time.monotonic() - began:.0f} s",
                    flush=True,
                )
        if not SMOKE:
            draw(challenge, ACROSS[name][0], points)


def draw(challenge, label, points):
    """Write the picture of a challenge's trade-off."""
    matplotlib.use("svg")
    from matplotlib import pyplot, ticker

    matplotlib.rcParams.update({"svg.hashsalt": challenge.name, "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, paid, score in points:
        axes.plot(paid, score, "o", color="#12304f")
        # of its point, where there is room
        left = paid > statistics.mean(paid_by for _, paid_by, _ in points)
        axes.annotate(
            name.replace("_", " "),
            (paid, score),
            xytext=(-7 if left else 7, 4),
            textcoords="offset points",
            ha="right" if left else "left",
        )
    if challenge.memory_bytes:
        axes.axvline(challenge.memory_bytes / 1024, color="#b42318", linestyle="--")
    axes.set(
        xlabel=label,
        ylabel=f"score ({challenge.unit}), less is better",
        title=challenge.title,
        yscale="log",
    )
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which(ticker.StrMethodFormatter("{x:g}"))
    axes.margins(0.2)
    figure.savefig(challenge.folder / "ladder" / "trade_off.svg", metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
