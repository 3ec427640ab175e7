"""Paired measurements: A, B, A, B, ... in one run.

The ratio is taken pair by pair; there are its median and its range.
"""

import json
import statistics
import subprocess
import sys


def ratio_line(name, ours, peers, unit, target):
    """One line of the table: medians, and the median of the paired ratios with its range.

    It also has the target; None means that there is none.
    """
    ratios = [a / b for a, b in zip(ours, peers, strict=True)]
    middle = statistics.median(ratios)
    verdict = "" if target is None else "reached" if middle <= target else "MISSED"
    return (
        f"| {name} | {statistics.median(ours):.4g} {unit} | {statistics.median(peers):.4g} {unit} |"
        f" {middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f}) | {'' if target is None else target} "
        f"| {verdict} |"
    )


HEAD = (
    "| figure | ours, median | peer, median | ratio, median (range) | target | "
    "|\n|---|---|---|---|---|---|"
)


def in_fresh_process(program, timeout_s=300):
    """Run a program in a Python of its own; the JSON object on its last line."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout_s
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def alternate(ours, peer, times):
    """([results of ours], [results of peer]), measured in turn."""
    pairs = [(ours(), peer()) for _ in range(times)]
    return [a for a, _ in pairs], [b for _, b in pairs]
