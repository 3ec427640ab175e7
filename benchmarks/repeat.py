"""Entries of the hackathon judged again and again, each time on other seeds.

They are judged with and without a busy loop on a core beside the judge, for rows of
docs/HACKATHON.md. A seed is the same with the loop and without it, so both must give the same score
to the last digit. Between judgings only the seeds differ: the spread is theirs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.judge.one_run import one_run
from manyhands.hackathon.judge.sandboxes import Sandboxes
from manyhands.learner.jupyter_server import end_with_parent

ENTRIES = (
    "slow_links/diloco",
    "lame_rank/asynchronous",
    "lame_rank/backup",
    "lame_rank/local_time",
    "big_batch/adam",
)
WHAT = (
    "`python -m benchmarks.repeat [CHALLENGE/ENTRY ...] [--judgings 10] [--runs 5]`: entries judged "
    "again and again, each time on other seeds, with and without a busy loop on a core beside the "
    "judge: rows of docs/HACKATHON.md."
)
HEAD = (
    "| entry | judgings | score, least to most | spread | with load as without | place in its "
    "challenge | seconds a judging, without and with load |\n|---|---|---|---|---|---|---|"
)


def main(arguments):
    """Judge the entries again and again, and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repeat", description=WHAT)
    parser.add_argument("entries", nargs="*", default=ENTRIES)
    parser.add_argument("--judgings", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    scores = {entry: ([], []) for entry in options.entries}  # without and with load
    lasted = {entry: ([], []) for entry in options.entries}
    with Sandboxes(4) as sandboxes:
        for number in range(options.judgings):
            seeds = [b"repeat %d %d" % (number, run) for run in range(options.runs)]
            for entry in options.entries:
                for loaded in (False, True) if number % 2 else (True, False):
                    began = time.monotonic()
                    with busy_core() if loaded else nothing():
                        score = judged(entry, sandboxes, seeds)
                    scores[entry][loaded].append(score)
                    lasted[entry][loaded].append(time.monotonic() - began)
                    print(
                        f"judging {number + 1}, {'with' if loaded else 'without'} load, {entry}: "
                        f"{score} in {lasted[entry][loaded][-1]:.0f} s, load average "
                        f"{os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
    print(HEAD, *(row(entry, scores, lasted) for entry in options.entries), sep="\n")


def judged(entry, sandboxes, seeds):
    """The score, as the judge takes it; None where a run has none."""
    name, _, idea = entry.partition("/")
    challenge = CHALLENGES[name]
    source = (challenge.folder / "ladder" / f"{idea}.py").read_text()
    runs = [one_run(challenge, sandboxes, source, seed)[0] for seed in seeds]
    problems = [run.problem for run in runs if run.problem]
    for problem in problems:
        print(f"{entry}: {problem}", flush=True)
    return None if problems else statistics.median(getattr(run, challenge.score) for run in runs)


@contextmanager
def busy_core():
    """A loop that takes one core for itself, as far as it gets it."""
    core = max(os.sched_getaffinity(0))
    loop = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"],
        preexec_fn=end_with_parent,
    )  # however this process ends
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


@contextmanager
def nothing():
    """A context in which nothing else runs."""
    yield


def row(entry, scores, lasted):
    """The row of an entry: its scores with and without load, and how they spread."""
    without, with_load = scores[entry]
    good = [score for score in without if score is not None]
    same = sum(score == other_score for score, other_score in zip(without, with_load, strict=True))
    spread = f"{(max(good) - min(good)) / statistics.median(good):.1%}" if good else ""
    span = f"{min(good):.4g} to {max(good):.4g}" if good else "no score"
    span += f", {len(without) - len(good)} without" if len(good) < len(without) else ""
    times = ", ".join(f"{statistics.median(score):.0f}" for score in lasted[entry])
    return (
        f"| `{entry}` | {len(without)} | {span} | {spread} | {same} of {len(without)} to the last "
        f"digit | {places(entry, scores)} | {times} |"
    )


def places(entry, scores):
    """The entry's place among those of its challenge, in each judging: which, and how often."""
    rivals = [other for other in scores if other.split("/")[0] == entry.split("/")[0]]
    positions = []
    for round_ in zip(*(scores[other][0] for other in rivals), strict=True):
        mine = round_[rivals.index(entry)]
        positions.append(
            1 + sum(other is not None and (mine is None or other < mine) for other in round_)
        )
    return ", ".join(
        f"{place} of {len(rivals)}: {positions.count(place)} times"
        for place in sorted(set(positions))
    )


if __name__ == "__main__":
    main(sys.argv[1:])
