"""What ties the forward call on one rank to the backward call on another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from manyhands.comm.communicator import Communicator
    from manyhands.comm.facts import Op


class GradientHandle:
    """The gradients that this rank owes for one operation, and whether it waits for one itself.

    It belongs to the node in autograd's graph. When the node goes before backward has passed it,
    those who would wait for this rank are told that no gradient comes; so an output that nobody
    uses never hangs another rank.
    """

    __slots__ = "c", "call", "done", "forward", "informs", "op", "owes", "waits"

    def __init__(self, c: Communicator, op: Op, forward: str, waits: bool = False) -> None:
        """Made before anything is sent: an answer may come while this rank is still sending."""
        self.c, self.op, self.forward, self.call, self.waits = (
            c,
            op,
            forward,
            forward + ".backward",
            waits,
        )
        self.owes: Sequence[int] = ()  # ranks of c, as those of `informs`
        self.informs: Sequence[int] = ()
        self.done = False
        if waits:
            c.expect(op)

    def owe(self, ranks: Iterable[int]) -> None:
        """The ranks that wait for a gradient from this one."""
        self.owes = tuple(ranks)
        if self.owes:
            self.c.owe(self.op)

    def send(self, gradients: Mapping[int, Sequence[torch.Tensor | None]]) -> None:
        """Send gradients to the ranks that this rank owes one.

        `gradients` is {rank: list of tensors or None}.
        """
        self.done = True
        if self.owes:
            self.c.give(self.op, self.call, {rank: _dense(gradients[rank]) for rank in self.owes})

    def take(self, rank: int) -> list[torch.Tensor | None]:
        """The gradients from `rank`, a list; None for what it did not use."""
        self.done = True
        return self.c.take_gradient(self.op, self.call, rank)

    def __del__(self) -> None:
        c, op = self.c, self.op
        if c.ended:
            return
        if not self.done:
            for rank in self.owes:
                c.give_none(op, self.call, rank)
            for rank in self.informs:
                c.want_none(
                    op,
                    rank,
                    f"Rank {c.rank} does not wait for the gradient of its {self.forward} any more: "
                    "the result was dropped. On that rank, give the delegate to recv as "
                    "delegate_variable, join it to the loss by pseudo_connect, or call its "
                    "backward(). If no gradient is wanted, detach.",
                )
        if self.waits or self.owes:
            c.forget(op)


def _dense(tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    return [t if t is None or not t.is_sparse else t.to_dense() for t in tensors]
