"""bcast, gather, scatter, allgather, alltoall and allreduce:
calls that all ranks of a communicator make, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from manyhands.comm.message import NUMBER, check_tensor, describe
from manyhands.functions.arguments import (
    ANCHOR,
    SAVED,
    no_gradient_for_whole_numbers,
    once,
    placed,
    tensors,
    wants,
)
from manyhands.functions.tickets import Ticket

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator
    from manyhands.comm.facts import Op, Place
    from manyhands.comm.message import Message


def bcast(c: Communicator, x: torch.Tensor | None, root: int = 0) -> torch.Tensor:
    """The root's tensor on all ranks.

    What the others give as x (None, say) is not looked at.

    Forward: along a binomial tree. Backward: the sum over all ranks of the gradients goes to the
    root's x; they travel straight to it. All ranks of c call it. After `chainermn.functions.bcast`
    (Akiba et al. 2017).
    """
    root = c.check_rank(root, "bcast", "root")
    place = c.next_call()
    if c.rank == root:
        c.checked(place, "bcast", lambda: check_tensor(x, "bcast"))
    value: torch.Tensor
    if c.rank == root and x is not None and wants(x):
        value = _Bcast.apply((c, place, root, True), x)
    else:
        value = _Bcast.apply((c, place, root, False), x if c.rank == root else None, ANCHOR)
    return value


def gather(
    c: Communicator, x: torch.Tensor, root: int = 0
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """At the root a tuple of all ranks' tensors, in the order of ranks; elsewhere a delegate (see
    `send`). Shapes may differ.

    Backward: each rank gets the gradient of its own tensor from the root. On the other ranks
    backward must reach the delegate. All ranks of c call it. Raises CommunicationError at the root
    if dtypes differ. After `chainermn.functions.gather` (Akiba et al. 2017).
    """
    root = c.check_rank(root, "gather", "root")
    place = c.next_call()
    c.checked(place, "gather", lambda: check_tensor(x, "gather"))
    gathered: tuple[torch.Tensor, ...] = (
        _Gather.apply((c, place, root, True), x)
        if wants(x)
        else _Gather.apply((c, place, root, False), x, ANCHOR)
    )
    return gathered if c.rank == root else gathered[0]


def scatter(c: Communicator, xs: Sequence[torch.Tensor] | None, root: int = 0) -> torch.Tensor:
    """This rank's item of the root's sequence, which has one tensor for each rank.

    What the others give as xs is not looked at.

    Backward: the root gets the gradients of all its tensors. Shapes may differ. All ranks of c call
    it. Raises ValueError at the root, and CommunicationError elsewhere, if the number of tensors is
    wrong. After `chainermn.functions.scatter` (Akiba et al. 2017).
    """
    root = c.check_rank(root, "scatter", "root")
    place = c.next_call()
    if c.rank != root:
        came: torch.Tensor = _Scatter.apply((c, place, root, ()), ANCHOR)
        return came
    parts = c.checked(place, "scatter", lambda: tensors(xs, "scatter", c.size))
    wanted = [wants(x) for x in parts]
    own: torch.Tensor = _Scatter.apply(
        (c, place, root, wanted), *parts, *([] if any(wanted) else [ANCHOR])
    )
    return own


def allgather(c: Communicator, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A tuple of all ranks' tensors, in the order of ranks, on all ranks.

    Shapes may differ, dtypes must not.

    Backward: rank r's x gets the sum, over all ranks, of the gradients of their copies of it: an
    all-to-all, then a sum (a reduce-scatter). All ranks of c call it. After
    `chainermn.functions.allgather` (Akiba et al. 2017).
    """
    place = c.next_call()
    c.checked(place, "allgather", lambda: check_tensor(x, "allgather"))
    gathered: tuple[torch.Tensor, ...] = (
        _Allgather.apply((c, place, True), x)
        if wants(x)
        else _Allgather.apply((c, place, False), x, ANCHOR)
    )
    return gathered


def alltoall(c: Communicator, xs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """A tuple whose item j is the tensor that rank j has for this rank: rank j's `xs[this rank]`.

    Shapes may differ, dtypes must not.

    Backward: an all-to-all of the gradients. All ranks of c call it. After
    `chainermn.functions.alltoall` (Akiba et al. 2017).
    """
    place = c.next_call()
    parts = c.checked(place, "alltoall", lambda: tensors(xs, "alltoall", c.size))
    wanted = [wants(x) for x in parts]
    anchor = [] if any(wanted) else [ANCHOR]
    theirs: tuple[torch.Tensor, ...] = _Alltoall.apply((c, place, wanted), *parts, *anchor)
    return theirs


def allreduce(c: Communicator, x: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' tensors, on all ranks.

    Shapes and dtypes must agree.

    Forward and backward: reduce-scatter, then all-gather. Backward: every rank's x gets the sum
    over all ranks of the gradients; so the backward of all ranks must pass through it. All ranks of
    c call it.
    """
    place = c.next_call()
    c.checked(place, "allreduce", lambda: check_tensor(x, "allreduce"))
    total: torch.Tensor = _Allreduce.apply(c, place, ANCHOR, x, torch.is_grad_enabled())
    return total


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


def _op(c: Communicator, place: Place) -> Op:
    return (c.name, *place)


def _total(
    mine: torch.Tensor | None, gradients: Iterable[torch.Tensor | None]
) -> torch.Tensor | None:
    """The sum of those that are there, in their order, in the memory of one that came: `mine`
    belongs to autograd. None if there is none.
    """
    found = [g for g in gradients if g is not None]
    if len(found) < 2:
        return found[0] if found else None
    first, second, *rest = found
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
        to: tuple[Communicator, Place, int, bool],
        x: torch.Tensor | None,
        anchor: torch.Tensor | None = None,
    ) -> torch.Tensor:
        c, place, root, wanted = to
        ctx.c, ctx.root, ctx.ticket = c, root, Ticket(c, _op(c, place), "bcast", waits=wanted)
        ctx.save_for_backward(SAVED)
        (value,), facts = c.bcast_tensors(
            place, "bcast", [x], root, wants=wanted, gpu=x is not None and x.is_cuda
        )
        if x is not None:
            value, ctx.device = x.view_as(x), x.device
        else:
            value = value.to(c.device) if facts["gpu"] else value
            if facts["wants"]:
                ctx.ticket.owe((root,))
        no_gradient_for_whole_numbers(ctx, (value,))
        return value

    @staticmethod
    @once
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c, ticket, mine = ctx.c, ctx.ticket, None
        ticket.send({ctx.root: [gradient]})
        if ticket.waits:
            mine = _total(
                gradient,
                (
                    gradient if rank == ctx.root else _on(_first(ticket.take(rank)), ctx.device)
                    for rank in range(c.size)
                ),
            )
        return None, mine, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        to: tuple[Communicator, Place, int, bool],
        x: torch.Tensor,
        anchor: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        c, place, root, wanted = to
        ctx.c, ctx.root, ctx.device, op = c, root, x.device, _op(c, place)
        at_root = c.rank == root
        ctx.ticket = Ticket(c, op, "gather", waits=wanted and not at_root)
        came = c.exchange(
            place,
            "gather",
            {} if at_root else {root: [x]},
            c.others if at_root else [],
            root=root,
            check=_same_dtype(c, x.dtype),
            wants=wanted,
            op=op,
        )
        ctx.ticket.owe(rank for rank, message in came.items() if message.facts["wants"])
        ctx.ticket.tells = [root] if ctx.ticket.waits else []
        ctx.save_for_backward(SAVED)
        if not at_root:
            return (torch.zeros((), device=x.device),)
        outputs = tuple(
            x.view_as(x) if rank == root else placed(came[rank], c)[0] for rank in range(c.size)
        )
        no_gradient_for_whole_numbers(ctx, outputs)
        return outputs

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        if ctx.c.rank == ctx.root:
            ctx.ticket.send({rank: [gradient] for rank, gradient in enumerate(gradients)})
            mine = gradients[ctx.root]
        else:
            mine = _on(_first(ctx.ticket.take(ctx.root)), ctx.device) if ctx.ticket.waits else None
        return None, mine, None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, to: tuple[Communicator, Place, int, Sequence[bool]], *xs: torch.Tensor
    ) -> torch.Tensor:
        c, place, root, wanted = to
        xs = xs[: len(wanted)]
        ctx.c, ctx.root, ctx.wanted, ctx.devices = c, root, wanted, [x.device for x in xs]
        ctx.ticket = Ticket(
            c,
            _op(c, place),
            "scatter",
            waits=any(w for rank, w in enumerate(wanted) if rank != root),
        )
        if c.rank == root:
            c.exchange(
                place,
                "scatter",
                {rank: [xs[rank]] for rank in c.others},
                [],
                root=root,
                wants=list(wanted),
            )
            value = xs[root].view_as(xs[root])
        else:
            message = c.exchange(place, "scatter", {}, [root], root=root)[root]
            (value,) = placed(message, c)
            ctx.ticket.owe([root] if message.facts["wants"][c.rank] else [])
        ctx.save_for_backward(SAVED)
        no_gradient_for_whole_numbers(ctx, [value])
        return value

    @staticmethod
    @once
    def backward(ctx: Any, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c = ctx.c
        if c.rank != ctx.root:
            ctx.ticket.send({ctx.root: [gradient]})
            return None, None
        theirs = [
            gradient
            if rank == c.rank
            else _on(_first(ctx.ticket.take(rank)), ctx.devices[rank])
            if ctx.wanted[rank]
            else None
            for rank in range(c.size)
        ]
        return None, *theirs, None


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        to: tuple[Communicator, Place, bool],
        x: torch.Tensor,
        anchor: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        c, place, wanted = to
        ctx.c, ctx.device, ctx.ticket = (
            c,
            x.device,
            Ticket(c, _op(c, place), "allgather", waits=wanted),
        )
        ctx.save_for_backward(SAVED)
        came = c.exchange(
            place,
            "allgather",
            {rank: [x] for rank in c.others},
            c.others,
            check=_same_dtype(c, x.dtype),
            wants=wanted,
        )
        ctx.ticket.owe([rank for rank in came if came[rank].facts["wants"]])
        outputs = tuple(
            x.view_as(x) if rank == c.rank else placed(came[rank], c)[0] for rank in range(c.size)
        )
        no_gradient_for_whole_numbers(ctx, outputs)
        return outputs

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c, ticket, mine = ctx.c, ctx.ticket, None
        ticket.send({rank: [gradients[rank]] for rank in c.others})
        if ticket.waits:
            mine = _total(
                gradients[c.rank],
                (
                    gradients[rank]
                    if rank == c.rank
                    else _on(_first(ticket.take(rank)), ctx.device)
                    for rank in range(c.size)
                ),
            )
        return None, mine, None


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, to: tuple[Communicator, Place, Sequence[bool]], *xs: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        c, place, wanted = to
        xs = xs[: len(wanted)]
        ctx.c, ctx.wanted, ctx.devices = c, wanted, [x.device for x in xs]
        ctx.save_for_backward(SAVED)
        ctx.ticket = Ticket(
            c,
            _op(c, place),
            "alltoall",
            waits=any(w for rank, w in enumerate(wanted) if rank != c.rank),
        )
        came = c.exchange(
            place,
            "alltoall",
            {rank: [xs[rank]] for rank in c.others},
            c.others,
            check=_same_dtype(c, xs[c.rank].dtype),
            wants=list(wanted),
        )
        ctx.ticket.owe([rank for rank in came if came[rank].facts["wants"][c.rank]])
        outputs = tuple(
            xs[rank].view_as(xs[rank]) if rank == c.rank else placed(came[rank], c)[0]
            for rank in range(c.size)
        )
        no_gradient_for_whole_numbers(ctx, outputs)
        return outputs

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        ctx.saved_tensors  # noqa: B018 - see _Send
        c, ticket = ctx.c, ctx.ticket
        ticket.send({rank: [gradients[rank]] for rank in c.others})
        mine = [
            gradients[rank]
            if rank == c.rank
            else _on(_first(ticket.take(rank)), ctx.devices[rank])
            if ctx.wanted[rank]
            else None
            for rank in range(c.size)
        ]
        return None, *mine, None


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, c: Communicator, place: Place, anchor: torch.Tensor, x: torch.Tensor, graph: bool
    ) -> torch.Tensor:
        ctx.c, ctx.place, ctx.input = c, place, (x.shape, x.dtype, x.device)
        ctx.save_for_backward(SAVED)
        ctx.used = (
            _Used(c, place)
            if graph and (torch.is_floating_point(x) or torch.is_complex(x))
            else None
        )
        total = c.sum_tensors(place, "allreduce", x)
        no_gradient_for_whole_numbers(ctx, [total])
        return total

    @staticmethod
    @once
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
            ctx.c.sum_tensors(ctx.place, "allreduce.backward", gradient, step=2),
            None,
        )


class _Used:
    """Tells the others if backward can no longer pass through this rank's allreduce."""

    def __init__(self, c: Communicator, place: Place) -> None:
        self.c, self.place, self.done = c, place, False
        c.expect(_op(c, place))

    def __del__(self) -> None:
        self.c.forget(_op(self.c, self.place))
        self.c.forget_step(self.place, step=2)
        if not self.done and not self.c.ended:
            self.c.spoil(
                self.place,
                "allreduce.backward",
                "its result was dropped there, so its backward cannot take part. Use it, "
                "or join it to the loss by pseudo_connect.",
                step=2,
            )


def _on(tensor: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
    return tensor if tensor is None else tensor.to(device)
