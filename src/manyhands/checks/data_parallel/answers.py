"""What the ranks answer in the experiments of unit 01's checks (`ranks`), for `diagnosis` to judge.

`looks` is None for a right answer, else the mistake whose result it equals, or "other".
"""

from __future__ import annotations

from typing import TypedDict


class RowsCase(TypedDict):
    """The rows of all ranks of a world. `odd`: the type of an answer that names no rows."""

    n: int
    world_size: int
    got: list[list[int]]
    odd: str | None
    borrowed: str | None  # the function of the package that was called


class Gradient(TypedDict):
    """A parameter's gradient on one rank."""

    got: list[float] | None
    right: list[float]
    looks: str | None


class Gradients(TypedDict):
    """The gradients of the trained parameters by name, and the frozen ones that have one."""

    gradients: dict[str, Gradient]
    frozen: list[str]


Waited = TypedDict("Waited", {"not waited": int})


class GradientCase(Gradients, Waited, total=False):
    """A group's sums on one rank.

    `complete`, {name: ranks that have the right sum}, is added by the diagnosis.
    """

    members: list[int]
    sent: float  # numbers, as `size`
    size: int
    complete: dict[str, list[int]]


Share = TypedDict(
    "Share",
    {
        "value": float | None,
        "gradient": list[float] | None,
        "looks": str | None,
        "serial": float | None,
        "serial gradient": list[float] | None,
    },
)


class ShareCase(Share):
    """The sum of all shares of a batch, and what a single process gets."""

    sizes: list[int]
    decay: float


class StepCase(TypedDict):
    """Three steps on one rank of a group.

    `reported` are the objectives that the learner's function returned, and `beyond` are the rows over
    its share that went through its model in each step.
    """

    members: list[int]
    got: list[float]
    right: list[float]
    looks: str | None
    beyond: list[int]
    frozen: bool  # still as it was
    reported: list[float | None]
    objectives: list[float]
    after: list[float]
