"""A model whose parts are on several ranks.

It is a list of parts, with the ranks that each one receives from and sends to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from manyhands import functions
from manyhands.links.shared_communicator import SharesCommunicator, check_rank

if TYPE_CHECKING:
    from typing import Self

    from manyhands.comm.communicator import Communicator

# a rank, several, or none
Ranks = int | list[int] | tuple[int, ...] | None
# of a part: the ranks that it hears, and those that it tells
Ends = tuple[Sequence[int] | None, Sequence[int] | None]


class MultiNodeChainList(SharesCommunicator, nn.Module):
    """The parts of a model that this rank has, run in the order in which they were added.

        class Rank0(links.MultiNodeChainList):          # rank 1 has one part: add_link(middle, rank_in=0, rank_out=0)
            def __init__(self, c):
                super().__init__(c)
                self.add_link(first, rank_in=None, rank_out=1)
                self.add_link(last, rank_in=1, rank_out=None)

    Forward: each part takes the inputs of the call (`rank_in=None`) or one value from each rank of
    `rank_in`, in their order and each as an argument of its own; what it returns goes to every rank
    of `rank_out`, or is the model's output (`rank_out=None`). A value is a tensor or a tuple of
    tensors, which arrives as a tuple. This rank's own number means: to, or from, a later part of
    this same list, first in, first out. Backward: start it on every rank, from the output or, on
    ranks without one, from the delegate that the call returns. The parts' backward passes run in
    the reverse order, so every `send` finds its gradient; gradients are those of the sum of all
    ranks' objectives. Shapes: whatever the parts agree on; they may differ from rank to rank and
    from call to call. Who calls: all ranks that are named, in the same iteration; a value that
    nobody sends, or nobody receives, is a `CommunicationError` after the communicator's time-out.
    Source: ChainerMN 7.8.1, `MultiNodeChainList`.
    """

    def __init__(self, c: Communicator) -> None:
        super().__init__()
        self.c = c
        self.parts = nn.ModuleList()
        self._rank_inouts: list[Ends] = []

    def add_link(self, module: nn.Module, rank_in: Ranks = None, rank_out: Ranks = None) -> Self:
        """Add a part.

        Returns the list itself, so that calls can be chained.

        module: a `torch.nn.Module`. rank_in, rank_out: a rank, a list of ranks, or None. Raises
        ValueError for a number that is no rank of the communicator, for an empty list, for a second
        part with `rank_out=None`, and for a part that waits for a value of this rank itself when no
        earlier part leaves one. Communicates nothing.
        """
        if not isinstance(module, nn.Module):
            raise ValueError(
                f"add_link takes a torch.nn.Module, and got {type(module).__name__}. "
                "Wrap a plain function in a module."
            )
        rank_in, rank_out = self._ranks(rank_in, "rank_in"), self._ranks(rank_out, "rank_out")
        if rank_out is None and any(out is None for _, out in self._rank_inouts):
            raise ValueError(
                "There is already a part with rank_out=None, and a rank has one output at most. "
                "Give this part a rank_out."
            )
        inouts: list[Ends] = [*self._rank_inouts, (rank_in, rank_out)]
        if self._left_over([*self._rank_inouts, (rank_in, ())]) < 0:
            raise ValueError(
                f"rank_in={self.c.rank} is this rank itself, and no earlier part leaves a value for"
                f" it. Add the part with rank_out={self.c.rank} first."
            )
        self.parts.append(module)
        self._rank_inouts = inouts
        return self

    def _ranks(self, ranks: Ranks, name: str) -> list[int] | None:
        if ranks is None:
            return None
        ranks = list(ranks) if isinstance(ranks, list | tuple) else [ranks]
        if not ranks:
            none = "the inputs of the call" if name == "rank_in" else "an output of the model"
            raise ValueError(f"{name} is an empty list. Give a rank, or None for {none}.")
        for rank in ranks:
            check_rank(rank, self.c, name)
        return ranks

    def _left_over(self, inouts: Sequence[Ends]) -> int:
        """How many values of this rank for itself are left when these parts have run."""
        return sum(
            (out or []).count(self.c.rank) - (come or []).count(self.c.rank) for come, out in inouts
        )

    def forward(self, *inputs: Any) -> Any:
        """The output of the part with `rank_out=None`; on a rank without such a part, the delegate.

        It is connected to everything that this rank has sent.

        Raises ValueError if the list is empty, or if a value that this rank leaves for itself is
        never taken.
        """
        if not self._rank_inouts:
            raise ValueError(
                "This MultiNodeChainList has no part. Add one with add_link(module, rank_in, "
                "rank_out)."
            )
        if self._left_over(self._rank_inouts):
            raise ValueError(
                f"A part has rank_out={self.c.rank}, this rank itself, and no later part takes the "
                f"value. Add a part with rank_in={self.c.rank}."
            )
        run = _Run(self.c)
        for module, (rank_in, rank_out) in zip(self.parts, self._rank_inouts, strict=True):
            run.part(module, inputs, rank_in, rank_out)
        return run.result()

    def extra_repr(self) -> str:
        """A line for each part, with its ranks, in the text that `print(model)` shows."""
        return "\n".join(
            f"({i}): rank_in={come}, rank_out={out}"
            for i, (come, out) in enumerate(self._rank_inouts)
        )


class _Run:
    """One forward pass.

    `delegate` stands for all communication so far: what comes next is connected to it, so that
    backward visits it later.
    """

    def __init__(self, c: Communicator) -> None:
        self.c, self.output, self.has_output = c, None, False
        self.delegate: torch.Tensor | None = None
        self.own: deque[Any] = deque()

    def part(
        self,
        module: nn.Module,
        inputs: tuple[Any, ...],
        rank_in: Sequence[int] | None,
        rank_out: Sequence[int] | None,
    ) -> None:
        arguments = (
            self.connect(inputs)[0] if rank_in is None else [self.take(rank) for rank in rank_in]
        )
        value = module(*arguments)
        if rank_out is None:
            self.output, self.has_output = value, True
        for rank in rank_out or ():
            self.leave(value, rank)

    def take(self, rank: int) -> Any:
        if rank == self.c.rank:
            return self.own.popleft()
        value = functions.recv(self.c, rank, delegate_variable=self.delegate)
        handle = _Handle.apply(value[0] if isinstance(value, tuple) else value)
        if handle.requires_grad:
            self.delegate = handle
        return value

    def leave(self, value: Any, rank: int) -> None:
        if rank == self.c.rank:
            self.own.append(value)
            return
        value, connected = self.connect(value)
        sent = functions.send(value, self.c, rank)
        # numbers without a gradient: the two delegates have to be one
        if self.delegate is not None and not connected:
            (sent,) = functions.pseudo_connect(self.delegate, sent)
        self.delegate = sent

    def connect(self, value: Any) -> tuple[Any, bool]:
        """(value, True) if the value's backward goes on to the delegate, else (value, False).

        The latter is so where no tensor in it has a gradient.
        """
        values = (
            [value]
            if isinstance(value, torch.Tensor)
            else list(value)
            if isinstance(value, list | tuple)
            else []
        )
        able = [
            i
            for i, v in enumerate(values)
            if isinstance(v, torch.Tensor) and (v.is_floating_point() or v.is_complex())
        ]
        if self.delegate is None or not able:
            return value, False
        for i, tensor in zip(
            able, functions.pseudo_connect(self.delegate, *(values[i] for i in able)), strict=True
        ):
            values[i] = tensor
        return (values[0] if isinstance(value, torch.Tensor) else tuple(values)), True

    def result(self) -> Any:
        return self.connect(self.output)[0] if self.has_output else self.delegate


class _Handle(torch.autograd.Function):
    """A single zero that stands for a tensor in the graph.

    Its backward visits the tensor's node and brings no gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(())

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> None:
        return None
