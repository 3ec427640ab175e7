"""Pairs of operators for layers whose loss is computed alike on every rank.

In each pair the forward pass of one is the backward pass of the other, so that a gradient that is
the same on all ranks is counted once: `copy_to_ranks` (identity, all-reduce) and `sum_over_ranks`
(all-reduce, identity); `split_channels` (cut, all-gather) and `gather_channels` (all-gather, cut).
These are not adjoints of the global program, in which N equal losses count N times. All ranks call
them, forward and backward, with gradients that are the same on all ranks. Channels are the third
dimension from the end. Source: Shoeybi et al. 2019, Megatron-LM, https://arxiv.org/abs/1909.08053,
section 3 and figure 3: f and g.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.autograd.function import once_differentiable

from manyhands import functions

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


class Sums(Protocol):
    """A communicator, or anything else that sums a tensor over ranks."""

    def allreduce(self, tensor: torch.Tensor, /) -> torch.Tensor:
        """The sum over all ranks, on all ranks."""


def copy_to_ranks(c: Sums, x: torch.Tensor) -> torch.Tensor:
    """Forward: x, which is the same on all ranks.

    Backward: the sum of all ranks' gradients. Any shape, the same on all ranks. Of `c` only its
    `allreduce` is called, here and in `sum_over_ranks`.
    """
    y: torch.Tensor = _Copy.apply(c, x)
    return y


def sum_over_ranks(c: Sums, x: torch.Tensor) -> torch.Tensor:
    """Forward: the sum of all ranks' x.

    Backward: the gradient as it is. Any shape, the same on all ranks.
    """
    y: torch.Tensor = _Sum.apply(c, x)
    return y


def split_channels(c: Communicator, x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Forward: this rank's channels of x, which is the same on all ranks.

    Backward: the ranks' gradients side by side. `sizes[r]`: channels of rank r.
    """
    y: torch.Tensor = _Split.apply(c, x, sizes)
    return y


def gather_channels(c: Communicator, x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Forward: the channels of all ranks side by side.

    Backward: this rank's channels of the gradient. `sizes[r]`: channels of rank r.
    """
    y: torch.Tensor = _Gather.apply(c, x, sizes)
    return y


def _own(c: Communicator, x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    return x.narrow(-3, sum(sizes[: c.rank]), sizes[c.rank]).contiguous()


def _side_by_side(c: Communicator, x: torch.Tensor) -> torch.Tensor:
    return torch.cat(functions.allgather(c, x.contiguous()), -3)


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Sums, x: torch.Tensor) -> torch.Tensor:
        ctx.c = c
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, _Sum.apply(ctx.c, grad)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Sums, x: torch.Tensor) -> torch.Tensor:
        ctx.c = c
        return c.allreduce(x.contiguous())

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, _Copy.apply(ctx.c, grad)


class _Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Communicator, x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        ctx.c = c
        return _own(c, x, sizes)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor, None]:
        return None, _side_by_side(ctx.c, grad), None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Communicator, x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        ctx.c, ctx.sizes = c, sizes
        return _side_by_side(c, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor, None]:
        return None, _own(ctx.c, grad, ctx.sizes), None
