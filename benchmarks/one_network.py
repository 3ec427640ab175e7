"""The table of docs/SYSTEMS.md on the small GPT, measured on this machine.

`python -m benchmarks.one_network`

Each way of `manyhands.gpt.ways` on four ranks, and the one with three axes on eight. Of the steps
the quickest counts, on the slowest rank; the peak is that of the rank with the highest, of a second
run, since the first one loads code.
"""

from manyhands import Cluster
from manyhands.gpt import CONTEXT, ROWS
from manyhands.gpt.ways import WAYS

from . import SMOKE, few

STEPS = few(10, 2)
SETUP = """
import os
import torch.distributed as dist
from manyhands.gpt import ways

dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
reference, told = ways.train("one process", {steps}), None
"""
ON_RANKS = """
quick = ways.train({way!r}, {steps})
full = ways.train({way!r}, 3, memory=True)
assert (far := ways.distance(quick.weights, reference.weights)) < ways.tolerance({steps})
told = far, quick.sent_bytes, full.peak_bytes, min(quick.seconds)
"""


def main():
    """Print the table, for four and for eight ranks."""
    print(
        "| way | ranks | largest difference of a weight | bytes sent in a step, by rank | peak of "
        "memory, MiB | tokens a second |\n|---|---|---|---|---|---|"
    )
    rows(4, [way for way in WAYS if way != "data x pipeline x tensor"][: few(len(WAYS), 2)])
    if not SMOKE:
        rows(8, ["data x pipeline x tensor"])


def rows(ranks, ways):
    """Print the rows of these ways on so many ranks."""
    with Cluster(nodes=1, ranks_per_node=ranks, framework="torch", name="one_network") as cluster:
        cluster.px(SETUP.format(steps=STEPS))
        for way in ways:
            cluster.px(
                ON_RANKS.format(way=way, steps=STEPS), ranks=[0] if way == "one process" else None
            )
            results = [result for result in cluster.pull("told") if result]
            far, sent, peaks, seconds = zip(*results, strict=True)
            by_rank = " to ".join(
                f"{sent_bytes:,}" for sent_bytes in sorted({min(sent), max(sent)})
            )
            print(
                f"| {way} | {len(results)} | {max(far):.0e} | {by_rank} | {max(peaks) / 2**20:.0f} "
                f"| {ROWS * CONTEXT / max(seconds):,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
