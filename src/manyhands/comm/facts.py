"""What travels with the tensors of a message: dicts of plain values, whose keys are these."""

from __future__ import annotations

from typing import Any, TypedDict

Slot = tuple[int, int]  # of a collective call: its epoch and its number there
# the name of an operation: (rank, communicator, number), or (communicator, *slot)
Op = tuple[Any, ...]


class FactsWithoutRoot(TypedDict, total=False):
    """What a message says about its operation, except for the root."""

    tag: int
    op: Op
    # whether the sender waits for a gradient; for each rank, where it sends them different tensors
    wants: Any
    gpu: bool  # whether the root's tensor is on a GPU
    # of a tensor that is to be summed: its dtype's number, its shape
    like: tuple[int, tuple[int, ...]]
    freed: bool  # no gradient comes: the node that would have sent it is gone


class Facts(FactsWithoutRoot, total=False):
    """Of a message of a call. None of them is always there."""

    root: int


class ControlFacts(TypedDict, total=False):
    """Of a message between the controls of two ranks.

    Which of them are there depends on what it says.
    """

    communicator: str
    text: str  # why, for the error that another rank raises
    op: Op
    slot: Slot | None  # "failed": of the call in which ranks do not agree; "spoiled": of the call
    step: int
    epoch: int  # "failed": the one that begins
    at: Slot  # "failed": where the rank was
    number: int  # "failed": of the call that is given up; "deadlock": of the wait that is to end
    query: int
    kind: str


class Answer(TypedDict, total=False):
    """The answer to a query: where a rank is.

    Without a call that it is in, only the first two are there.
    """

    query: int
    text: str | None
    kind: str
    number: int
    on_me: bool  # whether it waits for the rank that asks
