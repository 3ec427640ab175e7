"""send, recv and pseudo_connect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from manyhands.comm.message import check_tensor
from manyhands.functions.arguments import (
    ANCHOR,
    SAVED,
    check_tensors,
    differentiate_once,
    needs_gradient,
    set_no_gradient_for_integers,
    to_devices,
)
from manyhands.functions.handles import GradientHandle

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


def send(
    x: torch.Tensor | list[torch.Tensor] | tuple[torch.Tensor, ...],
    c: Communicator,
    rank: int,
    tag: int = 0,
) -> torch.Tensor:
    """Send a tensor, or a sequence of tensors in one message, to `rank`; that rank calls `recv`.

    Forward: returns a *delegate*, a zero of dimension 0, which stands for what was sent in this
    rank's graph. Backward: waits for the gradient from `rank` and passes it to x; None if that rank
    has not used what it got. So backward must reach the delegate: hand it to a `recv`, join it to
    the loss with `pseudo_connect`, add it to the loss, or call its `backward()`.

    Returns when the message is on its way (up to 8 KB, in up to 32 tensors, and no more than 16
    messages that the other rank has not yet taken in) or when the other rank has taken it in; it
    does so in any call of its own that waits. Raises ValueError for this rank itself or one that
    does not exist, CommunicationError after the communicator's time-out. After
    `chainermn.functions.send` (Akiba et al. 2017).
    """
    xs: Sequence[torch.Tensor]
    if isinstance(x, (list, tuple)):
        xs = check_tensors(x, "send")
        wanted = any([needs_gradient(tensor) for tensor in xs])  # noqa: C419 - each is looked at
    else:
        check_tensor(x, "send")
        xs, wanted = (x,), needs_gradient(x)
    sent: torch.Tensor = (
        _Send.apply((c, rank, tag, wanted), *xs)
        if wanted
        else _Send.apply((c, rank, tag, wanted), *xs, ANCHOR)
    )
    return sent


def recv(
    c: Communicator,
    rank: int,
    delegate_variable: torch.Tensor | None = None,
    tag: int = 0,
    force_tuple: bool = False,
) -> torch.Tensor | Any:
    """Receive what `rank` sends: a tensor, or a tuple of tensors.

    It is a tuple if that rank sent several, or with `force_tuple`.

    Forward: shapes and dtypes come with the message. Messages with one tag come in the order in
    which they were sent; others may overtake them. Backward: sends the gradient back to `rank`.
    With `delegate_variable`, the result depends on it: backward goes on from here to the send that
    the delegate stands for.

    Raises ValueError for this rank itself or one that does not exist, CommunicationError when
    nothing comes within the communicator's time-out. After `chainermn.functions.recv` (Akiba et al.
    2017).
    """
    if delegate_variable is not None:
        check_tensor(delegate_variable, "recv")
    received = _Recv.apply((c, rank, tag), delegate_variable, ANCHOR)
    return received if force_tuple or len(received) != 1 else received[0]


class Connected(tuple[torch.Tensor, ...]):
    """The tuple that `pseudo_connect` returns."""

    def backward(
        self, gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None
    ) -> None:
        """Backward from all of them, each with gradient one or with its own of a sequence.

        Without gradients they must be scalars.
        """
        gradients = (
            [None] * len(self)
            if gradient is None
            else [gradient]
            if isinstance(gradient, torch.Tensor)
            else list(gradient)
        )
        if len(gradients) != len(self):
            raise ValueError(
                f"backward: {len(gradients)} gradients for {len(self)} tensors; there must be one "
                "for each."
            )
        wanted = [(t, g) for t, g in zip(self, gradients, strict=True) if t.requires_grad]
        torch.autograd.backward([t for t, _ in wanted], [g for _, g in wanted])


def pseudo_connect(
    delegate_variable: torch.Tensor | None, *actual_variables: torch.Tensor
) -> Connected:
    """Join tensors to a delegate: backward from any of them reaches both.

    Returns the actual variables as a tuple.

    Backward: gradients go on unchanged to the actual variables, zeros go to the delegate. Sends
    nothing itself. With None for the delegate the actual variables are returned as they are. After
    `chainermn.functions.pseudo_connect` (Akiba et al. 2017).
    """
    for variable in actual_variables:
        check_tensor(variable, "pseudo_connect")
    if not actual_variables:
        raise ValueError(
            "pseudo_connect: give at least one variable that the delegate is to be joined to."
        )
    if delegate_variable is None:
        return Connected(actual_variables)
    check_tensor(delegate_variable, "pseudo_connect")
    return Connected(_PseudoConnect.apply(delegate_variable, *actual_variables))


class _Send(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, to: tuple[Communicator, int, int, bool], *xs: torch.Tensor
    ) -> torch.Tensor:
        c, rank, tag, wanted = to
        xs = xs if wanted else xs[:-1]  # without the anchor
        ctx.handle = handle = GradientHandle(c, c.next_operation(), "send", waits=wanted)
        c.post(rank, tag, "send", xs, handle.op, wants=wanted)
        if wanted:
            handle.informs = (rank,)
        ctx.rank, ctx.devices = rank, [x.device for x in xs]
        ctx.save_for_backward(SAVED)
        return torch.zeros((), device=xs[0].device if xs else None)

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, _: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        # under torch.utils.checkpoint this runs the forward again, with its messages, before this
        # rank waits
        ctx.saved_tensors  # noqa: B018
        if not ctx.handle.waits:
            return (None,) * (2 + len(ctx.devices))
        gradients = ctx.handle.take(ctx.rank) or [None] * len(ctx.devices)
        return None, *[
            g if g is None else g.to(device)
            for g, device in zip(gradients, ctx.devices, strict=True)
        ]


class _Recv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        source: tuple[Communicator, int, int],
        delegate: torch.Tensor | None,
        anchor: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        c, rank, tag = source
        ctx.rank, ctx.delegate = (
            rank,
            None if delegate is None else (delegate.shape, delegate.dtype, delegate.device),
        )
        ctx.save_for_backward(SAVED)
        message = c.take(rank, tag, "recv")
        ctx.handle = GradientHandle(c, message.facts["op"], "send")
        if message.facts["wants"]:
            ctx.handle.owe((rank,))
        received = to_devices(message, c)
        set_no_gradient_for_integers(ctx, received)
        return tuple(received)

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send; and it raises if backward has been here before
        ctx.handle.send({ctx.rank: gradients})
        if ctx.delegate is None:
            return None, None, None
        shape, dtype, device = ctx.delegate
        return None, torch.zeros(shape, dtype=dtype, device=device), None


class _PseudoConnect(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, delegate: torch.Tensor, *actual: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ctx.delegate = delegate.shape, delegate.dtype, delegate.device
        set_no_gradient_for_integers(ctx, actual)
        return tuple(t.view_as(t) for t in actual)

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        shape, dtype, device = ctx.delegate
        return torch.zeros(shape, dtype=dtype, device=device), *gradients
