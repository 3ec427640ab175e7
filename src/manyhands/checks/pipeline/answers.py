"""What the ranks answer in the experiments of unit 14's checks.

The experiments are in `ranks` and `update_ranks`, and `diagnosis` and `update_diagnosis` judge the
answers.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Gradient(TypedDict):
    """A parameter's gradient against the right one. `looks`: the mistake that it looks like."""

    name: str
    right: bool
    looks: str | None
    sample: list[float]
    wanted: list[float]


class Touched(TypedDict):
    """Which of the caller's tensors have different numbers now, and which require a gradient."""

    changed: list[str]
    asked: list[str]


_Run = TypedDict(
    "_Run",
    {
        "loss has a graph": bool,
        "right loss": "float | None",
        "wrong losses": dict[str, float],
        "right sent": list[int],
        "held back": int,
        "may hold": int,
    },
)


class Run(Touched, _Run):
    """One run on a rank.

    `sent` is [messages, bytes], and `bytes` is [what the step kept too much, what it needs].
    """

    rank: int
    stage: int
    schedule: str
    loss: Any
    gradients: list[Gradient]
    sent: list[int]
    held: int
    made: int
    bytes: list[int]


class RunCase(Run):
    """The same with the run's number."""

    run: int


_Update = TypedDict("_Update", {"right norm": float, "norm looks": "str | None"})


class UpdateCase(_Update):
    """One update on a rank. `looks`: the mistake that its weights look like."""

    rank: int
    members: list[int]
    stages: int
    norm: float | None
    max_norm: float
    looks: str | None
    weights: list[float]
    wanted: list[float]
