"""What the experiments of unit 08's checks answer, for `diagnosis` to judge.

They run on the ranks (`ranks`, `train_ranks`) and in the kernel (`in_tensorflow`).
"""

from __future__ import annotations

from typing import Any, TypedDict

Shape = tuple[int, ...]
Pieces = list[list[int]]  # [variable, start, stop, server]


class Cover(TypedDict):
    """Variables, and the learner's pieces of them, or None if they are no pieces."""

    shapes: list[Shape]
    servers: int
    pieces: Pieces | None


class PlaceCase(TypedDict):
    """Variables to place, and the bytes that a server's link may carry."""

    shapes: list[Shape]
    workers: int
    servers: int
    link: int


class PlacedCase(Cover):
    """The same with the learner's pieces."""

    workers: int
    link: int


class More(TypedDict, total=False):
    """What a case has in addition to its tensors. `places`: of a server's numbers."""

    topic: str
    count: int | None
    step: int
    layout: int
    places: list[int] | None


class TensorsCase(More):
    """Tensors of one rank. `looks`: the mistake that they look like, or nothing if right."""

    workers: int
    got: list[float] | None
    right: list[float]
    looks: str | None


class StaleCase(TensorsCase):
    """The same after a schedule, and how stale each push was."""

    stale: list[int] | None
    wanted: list[int]
    between: list[int]
    schedule: list[int]


class TrainCase(TensorsCase):
    """The same after a training. `bytes`: on a server's link in a step, None if not placed."""

    rank: int
    server: bool
    bytes: int | None
    allowed: int


class ServersCase(TypedDict):
    """How many servers a limit needs."""

    workers: int
    limit_s: float
    right: int | None
    got: Any
    wrong: dict[str, int | None]


_Placed = TypedDict("_Placed", {"on a server": bool})


class StrategyCase(_Placed):
    """A training by ParameterServerStrategy. `wanted`: calls that were to be scheduled."""

    got: list[float]
    right: list[float]
    looks: str | None
    where: str
    scheduled: int
    wanted: int
    rate: float
    spoiled: bool
