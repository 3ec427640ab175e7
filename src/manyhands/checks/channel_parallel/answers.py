"""What ranks report in the experiments of unit 13's checks (`ranks`), and `diagnosis` judges."""

from __future__ import annotations

from typing import Any, TypedDict


class Compared(TypedDict):
    """A value against the right one. `looks`: the mistake that it looks like."""

    name: str
    right: bool
    looks: str
    sample: list[Any]
    wanted: list[Any]


_Wanted = TypedDict("_Wanted", {"wanted shape": list[int]}, total=False)


class Result(Compared, _Wanted, total=False):
    """The same of two tensors.

    `differ`: [indices, numbers, right numbers] of the first wrong ones.
    """

    shape: list[int]
    differ: list[Any] | None


class Cut(TypedDict):
    """Weight and bias of a rank, and how each is held: [trained, parameter, shared, bytes]."""

    results: list[Result]
    whole: int
    held: list[list[Any]]


class PartCase(Cut):
    """A rank's part of a layer."""

    split: str
    rank: int
    size: int


class Both(TypedDict):
    """A forward pass, and a backward pass if there was one: [bytes, messages] of this rank."""

    results: list[Result]
    forward: list[int]
    backward: list[int] | None
    detached: bool


class LayerAnswer(Both):
    """The layers on a rank, with the numbers in the whole x and y."""

    rank: int
    size: int
    gradients: list[Result]
    numel: dict[str, int]


class PairCase(LayerAnswer):
    """The same on a rank of a group."""

    members: tuple[int, ...]


class LayerCase(PairCase):
    """The same of one of several layers."""

    number: int


class OperatorAnswer(Both):
    """An operator on a rank, with the numbers in the whole result."""

    which: str
    rank: int
    size: int
    numel: int


class OperatorCase(OperatorAnswer, total=False):
    """The same on a rank of a group. The kernel takes the gradients out of the results."""

    members: tuple[int, ...]
    gradients: list[Result]


class MovedCase(TypedDict):
    """What the learner predicts, and what this rank has sent."""

    members: tuple[int, ...]
    way: str
    size: int
    x: list[int]
    weight: list[int]
    y: list[int]
    sent: int
    predicted: Any


class Side(TypedDict):
    """The learner's largest side for [batch, c_in, c_out, kernel]."""

    asked: list[int]
    got: Any


class MovedAnswer(TypedDict):
    """What a rank answers."""

    cases: list[MovedCase]
    sides: list[Side]
