"""What carries the messages of one rank.

`gloo`, `mpi` and `nccl` have a class each that does this. A `Line` says how far a rank and one
other are with what they send each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from manyhands.comm.message import Spec

# of a message that may not be forgotten yet: peer, number, and a function of both that tells
# whether it may
Unfinished = tuple[int, float, Callable[[int, float], bool]]
# key, call, facts, specs, and the bytes of the tensors that travel inside, or None
Head = tuple[Any, ...]


class Wire(Protocol):
    """Sends and receives heads and payloads between global ranks.

    Never waits for a peer that has not yet sent.

    Messages to one peer are numbered from 1. `payload` and `buffer`: how a large tensor is sent,
    and where it goes.
    """

    name: str
    confirms: bool  # whether a large message has left when the peer says so; else `left` tells
    spin_s: float  # of a wait, before it sleeps between looks
    rank: int
    size: int

    def payload(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor as it is sent after a head."""

    def buffer(self, spec: Spec) -> torch.Tensor:
        """An empty tensor that a payload with this spec is received into."""

    def poll(self, looks: int) -> tuple[int, bytes | bytearray] | None:
        """The next head that has come, as (peer, bytes), or None."""

    def send_head(self, peer: int, number: int, raw: bytes) -> None:
        """Send the head with this number; returns at once."""

    def send_payload(
        self, peer: int, number: int, index: int, payload: torch.Tensor, last: bool
    ) -> None:
        """Send one tensor of message `number`; `index` counts them, `last` marks the last one."""

    def fetch(self, peer: int, number: int, index: int, payload: torch.Tensor) -> None:
        """Receive what the peer has announced; returns when it is there."""

    def taken(self, peer: int, number: int) -> None:
        """The peer has taken all messages up to this number."""

    def abandon(self, peer: int) -> None:
        """The peer is gone."""

    def close(self) -> None:
        """This rank says no more."""


class LeavingWire(Wire, Protocol):
    """A wire that does not confirm: it knows itself what has left."""

    def left(self, peer: int, number: float) -> bool:
        """Whether the peer has taken all messages up to this number."""


class Line:
    """How far this rank and one other are with their heads."""

    __slots__ = "got", "outbox", "reported", "seen", "sent"

    def __init__(self) -> None:
        self.sent = self.seen = 0  # heads sent to the peer, and how many of them it has taken
        self.got = self.reported = 0  # heads taken from the peer, and how many of them it knows of
        # heads that the peer's window has no room for, with what follows them
        self.outbox: deque[tuple[Head, Sequence[torch.Tensor]]] = deque()
