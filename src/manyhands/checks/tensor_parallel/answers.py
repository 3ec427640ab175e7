"""What the ranks answer in the experiments of unit 15's checks.

The experiments are in `ranks` and `vocabulary_ranks`, and `diagnosis` judges the answers.
"""

from __future__ import annotations

from typing import Any, TypedDict

_Compared = TypedDict("_Compared", {"wanted shape": list[int]})


class Compared(_Compared):
    """A tensor against the right one. `looks`: the mistake that it looks like.

    `shape` is None if the value is not a tensor.
    """

    name: str
    right: bool
    looks: str
    sample: list[Any]
    wanted: list[Any]
    shape: list[int] | None


class Tried(TypedDict):
    """A forward and a backward pass on a rank, each with the [calls, bytes] that it sent."""

    rank: int
    size: int
    members: list[int]
    value: Compared
    detached: bool
    touched: list[str]
    gradients: list[Compared]
    forward: list[int]
    backward: list[int]


class Summed(Tried):
    """The same with the right [calls, bytes] of forward and of backward."""

    sums: list[list[int]]


class LayerCase(Summed):
    """The same of a layer, or of an operator. `what`: which one."""

    what: str


class VocabularyCase(LayerCase):
    """The same of a cross-entropy. `times`: the factor of its scores."""

    times: float


class Piece(TypedDict):
    """A rank's pieces of qkv and out.

    `held` has [numbers in the memory that a piece keeps, numbers that it needs, whether it shares
    the memory of what was given] for each.
    """

    size: int
    heads: int
    rank: int
    touched: list[str]
    results: list[Compared]
    held: list[tuple[int, int, bool]]


class Refused(TypedDict):
    """What the learner's function did with heads that cannot be divided."""

    heads: int
    size: int
    error: str | None
    answer: str


class Cut(TypedDict):
    """What a rank answers for the learner's function that cuts heads."""

    pieces: list[Piece]
    refused: list[Refused]
