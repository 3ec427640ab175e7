"""What the experiment of unit 09's barrier answers on rank 0, for `diagnosis` to judge."""

from __future__ import annotations

from typing import TypedDict


class WrongAnswer(TypedDict):
    """A call of the learner's barrier whose answer is not ours. `left`: how many workers have."""

    call: str
    bound: float
    clocks: dict[int, int]
    waiting: list[int]
    left: int
    expected: list[int]
    got: list[int] | None


class BarrierRun(TypedDict):
    """The answers of a run, and the first one that is wrong."""

    answers: list[list[int] | None]
    first: WrongAnswer | None
