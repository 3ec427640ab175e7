"""Forward and backward of the collective calls, as nodes of autograd's graph.

Each class is one call of `manyhands.functions.collective` with its backward pass, for example
`_Alltoall.backward`. PyTorch shows the names of these classes, as `<_AlltoallBackward>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from manyhands.comm.message import NUMBER, describe
from manyhands.functions.arguments import (
    SAVED,
    differentiate_once,
    set_no_gradient_for_integers,
    to_devices,
)
from manyhands.functions.handles import GradientHandle

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator
    from manyhands.comm.facts import Op, Slot
    from manyhands.comm.message import Message


def _same_dtype(c: Communicator, dtype: torch.dtype) -> Callable[[Message], str | None]:
    number = NUMBER[dtype]

    def check(message: Message) -> str | None:
        if message.specs[0] is not None and message.specs[0][0] == number:
            return None
        return (
            f"it has {str(dtype).removeprefix('torch.')}, rank {c.name_of(message.source)} sent "
            f"{describe(message.tensors)}. The dtypes must agree."
        )

    return check


def _op(c: Communicator, slot: Slot) -> Op:
    return (c.name, *slot)


def _total(
    mine: torch.Tensor | None, gradients: Iterable[torch.Tensor | None]
) -> torch.Tensor | None:
    """The sum of those gradients that are not None, in their order; None if there is none.

    It is made in the memory of a gradient that came: `mine` belongs to autograd.
    """
    arrived = [g for g in gradients if g is not None]
    if len(arrived) < 2:
        return arrived[0] if arrived else None
    first, second, *rest = arrived
    total = second.add_(first) if first is mine else first.add_(second)
    for gradient in rest:
        total.add_(gradient)
    return total


def _first(gradients: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    return gradients[0] if gradients else None


class _Bcast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        to: tuple[Communicator, Slot, int, bool],
        x: torch.Tensor | None,
        anchor: torch.Tensor | None = None,
    ) -> torch.Tensor:
        c, slot, root, wanted = to
        ctx.c, ctx.root, ctx.handle = (
            c,
            root,
            GradientHandle(c, _op(c, slot), "bcast", waits=wanted),
        )
        ctx.save_for_backward(SAVED)
        (value,), facts = c.bcast_tensors(
            slot, "bcast", [x], root, wants=wanted, gpu=x is not None and x.is_cuda
        )
        if x is not None:
            value, ctx.device = x.view_as(x), x.device
        else:
            value = value.to(c.device) if facts["gpu"] else value
            if facts["wants"]:
                ctx.handle.owe((root,))
        set_no_gradient_for_integers(ctx, (value,))
        return value

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c, handle, mine = ctx.c, ctx.handle, None
        handle.send({ctx.root: [gradient]})
        if handle.waits:
            mine = _total(
                gradient,
                (
                    gradient if rank == ctx.root else _on(_first(handle.take(rank)), ctx.device)
                    for rank in range(c.size)
                ),
            )
        return None, mine, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        to: tuple[Communicator, Slot, int, bool],
        x: torch.Tensor,
        anchor: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        c, slot, root, wanted = to
        ctx.c, ctx.root, ctx.device, op = c, root, x.device, _op(c, slot)
        at_root = c.rank == root
        ctx.handle = GradientHandle(c, op, "gather", waits=wanted and not at_root)
        came = c.exchange(
            slot,
            "gather",
            {} if at_root else {root: [x]},
            c.others if at_root else [],
            root=root,
            check=_same_dtype(c, x.dtype),
            wants=wanted,
            op=op,
        )
        ctx.handle.owe(rank for rank, message in came.items() if message.facts["wants"])
        ctx.handle.informs = [root] if ctx.handle.waits else []
        ctx.save_for_backward(SAVED)
        if not at_root:
            return (torch.zeros((), device=x.device),)
        outputs = tuple(
            x.view_as(x) if rank == root else to_devices(came[rank], c)[0] for rank in range(c.size)
        )
        set_no_gradient_for_integers(ctx, outputs)
        return outputs

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        if ctx.c.rank == ctx.root:
            ctx.handle.send({rank: [gradient] for rank, gradient in enumerate(gradients)})
            mine = gradients[ctx.root]
        else:
            mine = _on(_first(ctx.handle.take(ctx.root)), ctx.device) if ctx.handle.waits else None
        return None, mine, None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, to: tuple[Communicator, Slot, int, Sequence[bool]], *xs: torch.Tensor
    ) -> torch.Tensor:
        c, slot, root, wanted = to
        xs = xs[: len(wanted)]
        ctx.c, ctx.root, ctx.wanted, ctx.devices = c, root, wanted, [x.device for x in xs]
        ctx.handle = GradientHandle(
            c,
            _op(c, slot),
            "scatter",
            waits=any(w for rank, w in enumerate(wanted) if rank != root),
        )
        if c.rank == root:
            c.exchange(
                slot,
                "scatter",
                {rank: [xs[rank]] for rank in c.others},
                [],
                root=root,
                wants=list(wanted),
            )
            value = xs[root].view_as(xs[root])
        else:
            message = c.exchange(slot, "scatter", {}, [root], root=root)[root]
            (value,) = to_devices(message, c)
            ctx.handle.owe([root] if message.facts["wants"][c.rank] else [])
        ctx.save_for_backward(SAVED)
        set_no_gradient_for_integers(ctx, [value])
        return value

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c = ctx.c
        if c.rank != ctx.root:
            ctx.handle.send({ctx.root: [gradient]})
            return None, None
        theirs = [
            gradient
            if rank == c.rank
            else _on(_first(ctx.handle.take(rank)), ctx.devices[rank])
            if ctx.wanted[rank]
            else None
            for rank in range(c.size)
        ]
        return None, *theirs, None


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        to: tuple[Communicator, Slot, bool],
        x: torch.Tensor,
        anchor: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        c, slot, wanted = to
        ctx.c, ctx.device, ctx.handle = (
            c,
            x.device,
            GradientHandle(c, _op(c, slot), "allgather", waits=wanted),
        )
        ctx.save_for_backward(SAVED)
        came = c.exchange(
            slot,
            "allgather",
            {rank: [x] for rank in c.others},
            c.others,
            check=_same_dtype(c, x.dtype),
            wants=wanted,
        )
        ctx.handle.owe([rank for rank in came if came[rank].facts["wants"]])
        outputs = tuple(
            x.view_as(x) if rank == c.rank else to_devices(came[rank], c)[0]
            for rank in range(c.size)
        )
        set_no_gradient_for_integers(ctx, outputs)
        return outputs

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c, handle, mine = ctx.c, ctx.handle, None
        handle.send({rank: [gradients[rank]] for rank in c.others})
        if handle.waits:
            mine = _total(
                gradients[c.rank],
                (
                    gradients[rank]
                    if rank == c.rank
                    else _on(_first(handle.take(rank)), ctx.device)
                    for rank in range(c.size)
                ),
            )
        return None, mine, None


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, to: tuple[Communicator, Slot, Sequence[bool]], *xs: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        c, slot, wanted = to
        xs = xs[: len(wanted)]
        ctx.c, ctx.wanted, ctx.devices = c, wanted, [x.device for x in xs]
        ctx.save_for_backward(SAVED)
        ctx.handle = GradientHandle(
            c,
            _op(c, slot),
            "alltoall",
            waits=any(w for rank, w in enumerate(wanted) if rank != c.rank),
        )
        came = c.exchange(
            slot,
            "alltoall",
            {rank: [xs[rank]] for rank in c.others},
            c.others,
            check=_same_dtype(c, xs[c.rank].dtype),
            wants=list(wanted),
        )
        ctx.handle.owe([rank for rank in came if came[rank].facts["wants"][c.rank]])
        outputs = tuple(
            xs[rank].view_as(xs[rank]) if rank == c.rank else to_devices(came[rank], c)[0]
            for rank in range(c.size)
        )
        set_no_gradient_for_integers(ctx, outputs)
        return outputs

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c, handle = ctx.c, ctx.handle
        handle.send({rank: [gradients[rank]] for rank in c.others})
        mine = [
            gradients[rank]
            if rank == c.rank
            else _on(_first(handle.take(rank)), ctx.devices[rank])
            if ctx.wanted[rank]
            else None
            for rank in range(c.size)
        ]
        return None, *mine, None


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, c: Communicator, slot: Slot, anchor: torch.Tensor, x: torch.Tensor, graph: bool
    ) -> torch.Tensor:
        ctx.c, ctx.slot, ctx.input = c, slot, (x.shape, x.dtype, x.device)
        ctx.save_for_backward(SAVED)
        ctx.used = (
            _Used(c, slot)
            if graph and (torch.is_floating_point(x) or torch.is_complex(x))
            else None
        )
        total = c.sum_tensors(slot, "allreduce", x)
        set_no_gradient_for_integers(ctx, [total])
        return total

    @staticmethod
    @differentiate_once
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        ctx.used.done = True
        shape, dtype, device = ctx.input
        gradient = (
            torch.zeros(shape, dtype=dtype, device=device)
            if gradient is None
            else gradient.to_dense()
        )
        return (
            None,
            None,
            None,
            ctx.c.sum_tensors(ctx.slot, "allreduce.backward", gradient, step=2),
            None,
        )


class _Used:
    """Tells the others if backward can no longer pass through this rank's allreduce."""

    def __init__(self, c: Communicator, slot: Slot) -> None:
        self.c, self.slot, self.done = c, slot, False
        c.expect(_op(c, slot))

    def __del__(self) -> None:
        self.c.forget(_op(self.c, self.slot))
        self.c.forget_step(self.slot, step=2)
        if not self.done and not self.c.ended:
            self.c.spoil(
                self.slot,
                "allreduce.backward",
                "its result was dropped there, so its backward cannot take part. Use it, "
                "or join it to the loss by pseudo_connect.",
                step=2,
            )


def _on(tensor: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
    return tensor if tensor is None else tensor.to(device)
