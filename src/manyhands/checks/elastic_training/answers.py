"""What the processes of unit 18's checks answer.

The processes are in `lossy_job`, `revived` and `second_life`, and `diagnosis` and `second_life`
judge the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    import torch

Fingerprint = dict[str, list[float]]  # {part of a job's state: numbers that tell it from others}
Rows = list[int] | None  # of one rank's share, or None if the learner's answer is anything else
Read = tuple[int, int, int]  # (old rank, start, stop)
ReshardCase = tuple[int, int, int, int]  # (numbers, old, new, rank)
# (step_s, save_s, lives_s, ranks), of which the first three are arrays
IntervalCase = tuple[Any, Any, Any, int]
# (error, the steps whose batch was asked for, whether the rank has written, its weights)
Lived = tuple[str, list[int], bool, list[float]]


class LoopRecord(TypedDict):
    """What a training loop has done about lost and new ranks, as `lossy_job` counts it.

    `commits`: the whole steps before each of them. `events`: [kind, rollbacks, steps that were
    tried without a new group, ranks] of each event that a whole step has followed. `bugs`: how
    often the bug was raised.
    """

    commits: list[int]
    steps: int
    events: list[list[Any]]
    bugs: int


class CountedJob(Protocol):
    """The job that a loop gets, which counts what the loop does with it."""

    record: LoopRecord
    seen: int
    world: int
    model: torch.nn.Sequential

    def train_step(self) -> float:
        """Train one step, in which ranks may be lost or arrive."""

    def commit(self) -> None:
        """Remember the state."""

    def rollback(self) -> None:
        """Return to the state of the last commit."""

    def regroup(self) -> int:
        """Form a new group of the ranks that exist, and return how many there are."""
