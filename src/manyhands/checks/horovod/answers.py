"""What ranks report in the experiments of unit 10's checks (`ranks`), and `diagnosis` judges."""

from __future__ import annotations

from typing import TypedDict

_Resumed = TypedDict("_Resumed", {"right momenta": list[float], "right settings": list[float]})


class ResumedCase(_Resumed):
    """A rank after it has resumed. `returned` is the step that the learner's function returned."""

    state: list[float]
    right: list[float]
    looks: str | None
    momenta: list[float]
    settings: list[list[float]]  # of each group
    returned: int | str
    step: int


class FittedCase(TypedDict):
    """The weights after training, and the rows of the ranks."""

    got: list[float]
    right: list[float]
    looks: str | None
    sizes: list[int]


_Epochs = TypedDict("_Epochs", {"right orders": list[list[int]]})


class EpochSizes(_Epochs):
    """What epochs are asked for: n rows, so many of each of p ranks in a step, and a base rate."""

    n: int
    rows: int
    p: int
    base: float


class EpochCase(EpochSizes):
    """The steps and the rates of one rank, by epoch."""

    orders: list[list[list[int]]]
    rates: list[float]
    reseeded: bool


class JoinedCase(EpochSizes):
    """The same of all ranks (see `diagnosis.joined`)."""

    orders: list[list[list[list[int]]]]
    rates: list[list[float]]
    reseeded: list[bool]


_Finished = TypedDict("_Finished", {"right weights": list[float]})


class FinishedCase(_Finished):
    """What a rank has written and returned; `losses` are those of all ranks."""

    losses: list[float]
    wrote: bool
    loss: float | None
    weights: list[float] | None
    returned: float | None
    tensor: bool
