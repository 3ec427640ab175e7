"""What the workers answer in the experiments of unit 07's checks (`ranks`).

`diagnosis` and `input_diagnosis` judge it.
"""

from __future__ import annotations

from typing import TypedDict

_Fitted = TypedDict("_Fitted", {"right steps": int})


class FittedCase(_Fitted):
    """A training by Model.fit. `steps` is None if no model was trained."""

    samples: int
    batch: int
    epochs: int
    rate: float
    workers: int
    steps: int | None
    got: list[float]
    right: list[float]
    looks: str | None


class LossCase(TypedDict):
    """The sum of all workers' parts, objective and gradients, for a batch of these shares."""

    sizes: list[int]
    decay: float
    got: list[float]
    right: list[float]
    scalar: bool
    looks: str | None


class Epoch(TypedDict, total=False):
    """One run of a pipeline, or an error."""

    batches: list[list[int]]
    labels: bool
    error: str | None


class InputSizes(TypedDict):
    """A data set of n samples; `stored` are the samples in their order."""

    n: int
    batch: int
    pipelines: int
    replicas: int
    stored: list[int]
    mine: dict[int, list[Epoch]]  # by pipeline of this worker


class InputCase(InputSizes):
    """The runs of all pipelines: `epochs[run][pipeline]` are batches."""

    error: str | None
    epochs: list[list[list[list[int]]]]
    labels: bool


_Chiefs = TypedDict("_Chiefs", {"to the chief's": bool})


class SaveAnswer(_Chiefs):
    """What a worker wrote, and what it has left behind."""

    chief: bool
    wrote: int
    saved: bool
    left: list[str]
    right: list[float]


class Saved(TypedDict):
    """What a checkpoint contains, and the files beside it."""

    got: list[float] | None
    others: list[str]


class Judged(Saved):
    """The same, and what it should contain."""

    right: list[float]
