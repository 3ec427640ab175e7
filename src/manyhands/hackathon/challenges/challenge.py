"""Define what a challenge is.

It consists of numbers, a function that draws its data, and a folder of texts and entries next to
this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from manyhands.hackathon.challenges import tasks
from manyhands.hackathon.entry.entry_file import challenge_folder

if TYPE_CHECKING:
    from pathlib import Path


RANKS = 4


@dataclass(frozen=True)
class Challenge:
    """What a challenge counts, and its limits; the smallest score wins.

    `score` names what counts: "clock_s", the time of the slowest rank, or "updates", how often
    ranks have asked for a gradient at new weights, one after the other.

    Links carry `rate_mbit` each way, a message is `delay_ms` under way. A gradient takes
    `gradient_s` and is of `batch_size` samples; a rank gets `most_batches` batches. `target` is the
    part of the test's samples that the trained model must name right. `task(seed)` draws the data.
    """

    name: str
    title: str
    score: Literal["clock_s", "updates"]
    unit: str
    target: float
    baseline: float  # its score, of which the board and the start page tell
    layers: tuple[int, ...]
    rate_mbit: float
    delay_ms: float
    gradient_s: float
    batch_size: int
    most_batches: int
    task: Callable[[bytes], Any]  # gives `tasks.Task`, or `tasks.Chains` with a device memory
    # by this factor a gradient takes longer on the rank that is slow at the moment
    slow_times: float = 1
    slow_s: float = 1  # for how long a rank stays slow
    # of a device of its own (`device_memory.py`), where the challenge is about memory; and there
    memory_bytes: int = 0
    call_s: float = 0  # a forward of a stage takes call_s + rows * row_s, a backward twice as long
    row_s: float = 0
    ranks: int = RANKS
    memory_mib: int = 512  # what an entry may have on a rank, beside what the room has before
    # of a rank in a run: what its own sums may take; ten times what the ladders need
    processor_s: int = 6
    # by this machine's clock, and only against a run that does not end: nobody asks for anything
    quiet_s: int = 120
    run_s: int = 3600  # and in all
    # for all runs of a judging (`judging.Spent`): some four times what the ladders need
    judging_s: int = 300

    @property
    def folder(self) -> Path:
        """Where the challenge's texts and entries are."""
        return challenge_folder(self.name)


LAYERS = (tasks.DIMENSIONS, 512, tasks.CLASSES)

SLOW_LINKS = Challenge(
    name="slow_links",
    title="Slow links",
    score="clock_s",
    unit="s",
    target=0.85,
    baseline=35.5,
    layers=LAYERS,
    rate_mbit=10,
    delay_ms=5,
    gradient_s=0.010,
    batch_size=32,
    most_batches=400,
    task=lambda seed: tasks.clouds(seed, RANKS, LAYERS, own=0.8),
)

BIG_BATCH = Challenge(
    name="big_batch",
    title="Big batch",
    score="updates",
    unit="updates",
    target=0.88,
    baseline=250,
    layers=LAYERS,
    rate_mbit=1000,
    delay_ms=0.05,
    gradient_s=0.010,
    batch_size=32,
    most_batches=400,
    task=lambda seed: tasks.clouds(seed, RANKS, LAYERS, own=0.8),
)

LAME_RANK = Challenge(
    name="lame_rank",
    title="One slow rank",
    score="clock_s",
    unit="s",
    target=0.83,
    baseline=15.3,
    layers=LAYERS,
    rate_mbit=1000,
    delay_ms=0.05,
    gradient_s=0.010,
    batch_size=32,
    most_batches=400,
    slow_times=10,
    slow_s=0.25,
    task=lambda seed: tasks.clouds(seed, RANKS, LAYERS, own=0.5),
)

DOES_NOT_FIT = Challenge(
    name="does_not_fit",
    title="It does not fit",
    score="clock_s",
    unit="s",
    target=0.8,
    baseline=8.72,
    layers=(32, 2),
    rate_mbit=400,
    delay_ms=0.05,
    gradient_s=0,
    batch_size=16,
    most_batches=300,
    memory_bytes=640 * 2**10,
    call_s=0.001,
    row_s=0.0005,
    task=lambda seed: tasks.chains(seed, 300 * 16),
)

CHALLENGES = {
    challenge.name: challenge for challenge in (SLOW_LINKS, LAME_RANK, DOES_NOT_FIT, BIG_BATCH)
}
