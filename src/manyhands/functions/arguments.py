"""Looking at what the caller has given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.autograd.function import once_differentiable

from manyhands.comm.message import check_tensor

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator
    from manyhands.comm.message import Message

G = TypeVar("G")
# autograd runs the backward of a call whose inputs need no gradient only if some input does: this
# one always does, and gets none
ANCHOR = torch.zeros((), requires_grad=True)
# what calls save for backward: torch then notices a second backward, and torch.utils.checkpoint the
# first
SAVED = torch.empty(0)


def differentiate_once(backward: Callable[..., G]) -> Callable[..., G]:
    """`once_differentiable`, without its cost where no second derivative is asked for."""
    careful, asked_for = once_differentiable(backward), torch.is_grad_enabled

    @functools.wraps(backward)
    def light(ctx: Any, *gradients: torch.Tensor | None) -> G:
        return careful(ctx, *gradients) if asked_for() else backward(ctx, *gradients)

    return light


def check_tensors(xs: object, call: str, size: int | None = None) -> list[torch.Tensor]:
    """The sequence as a list of tensors; ValueError if it is none, or has not `size` items."""
    if isinstance(xs, torch.Tensor) or not isinstance(xs, (list, tuple)):
        raise ValueError(
            f"{call}: a list or tuple with one tensor for each rank is needed, not "
            f"{type(xs).__name__}."
        )
    if size is not None and len(xs) != size:
        raise ValueError(
            f"{call}: {len(xs)} tensors for {size} ranks; there must be one for each rank."
        )
    for x in xs:
        check_tensor(x, call)
    return list(xs)


def needs_gradient(x: torch.Tensor) -> bool:
    """Whether a gradient for x is wanted."""
    return torch.is_grad_enabled() and x.requires_grad


def set_no_gradient_for_integers(ctx: Any, outputs: Sequence[torch.Tensor]) -> None:
    """Tell autograd which outputs have no gradient.

    Where there might be one but none comes, backward gets None.
    """
    ctx.set_materialize_grads(False)
    whole = [t for t in outputs if not (t.is_floating_point() or t.is_complex())]
    if whole:
        ctx.mark_non_differentiable(*whole)


def to_devices(message: Message, c: Communicator) -> list[torch.Tensor]:
    """The message's tensors where they are to be: on this rank's device if they came from a GPU."""
    return [
        t.to(c.device) if spec and spec[1] else t
        for t, spec in zip(message.tensors, message.specs, strict=True)
    ]
