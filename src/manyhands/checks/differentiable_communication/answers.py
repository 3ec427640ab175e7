"""What the ranks answer in the experiments of unit 11's checks (`ranks`), and `diagnosis` judges.

`sent` and `right` count numbers of 8 bytes. `spoiled` is 1.0 if a gradient that backward was given
has changed.
"""

from __future__ import annotations

from typing import TypedDict

_Delegated = TypedDict("_Delegated", {"with the delegate's": list[float]})


class MessageCase(_Delegated):
    """A matrix to other ranks and back. `parts`: the gradient of each of the messages."""

    members: list[int]
    got: list[float] | None
    serial: list[float]
    sent: float
    right: int
    parts: list[list[float]]


class OrderCase(TypedDict):
    """Two messages, with backward in opposite orders. `got` is None on a rank that receives."""

    got: list[list[float] | None] | None
    serial: list[list[float]]
    spoiled: float


class InGroup(TypedDict):
    """A case on the rank whose number in the group is `me`."""

    members: list[int]
    me: int


_Added = TypedDict("_Added", {"by memory": list[float]})


class Moved(InGroup, _Added):
    """A gradient, and what was sent for it. `by memory`: added up in the order of memory."""

    kind: str
    got: list[float] | None
    sent: float
    size: int
    spoiled: float


class BroadcastCase(Moved):
    """`own`: the gradient that each rank's backward is given."""

    root: int
    own: list[list[float]]


class AllgatherCase(Moved):
    """`own[r][j]`: the gradient that rank r has for the piece of rank j."""

    own: list[list[list[float]]]


_Serial = TypedDict("_Serial", {"serial value": list[float] | None}, total=False)


class Connected(_Serial, total=False):
    """Gradients by name, and a value; or only an error.

    `leads`: whether backward reaches the communication.
    """

    got: dict[str, list[float] | None]
    serial: dict[str, list[float]]
    value: list[float] | None
    leads: bool
    error: str


class ConnectCase(InGroup, Connected):
    """One backward on one rank of a group."""


class RingCase(InGroup):
    """A piece from the previous rank, and the trace of the calls as text."""

    got: list[float] | None
    overwritten: float
    pieces: list[list[float]]
    trace: str
