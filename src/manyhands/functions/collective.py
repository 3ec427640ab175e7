"""The collective calls: bcast, gather, scatter, allgather, alltoall and allreduce.

All ranks of a communicator make them, in the same order. `collective_backward` has what they do in
autograd's graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from manyhands.comm.message import check_tensor
from manyhands.functions.arguments import (
    ANCHOR,
    check_tensors,
    needs_gradient,
)
from manyhands.functions.collective_backward import (
    _Allgather,
    _Allreduce,
    _Alltoall,
    _Bcast,
    _Gather,
    _Scatter,
)

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


def bcast(c: Communicator, x: torch.Tensor | None, root: int = 0) -> torch.Tensor:
    """The root's tensor on all ranks.

    What the others give as x (None, say) is not looked at.

    Forward: along a binomial tree. Backward: the sum over all ranks of the gradients goes to the
    root's x; they travel straight to it. All ranks of c call it. After `chainermn.functions.bcast`
    (Akiba et al. 2017).
    """
    root = c.check_rank(root, "bcast", "root")
    slot = c.next_call()
    if c.rank == root:
        c.run_checked(slot, "bcast", lambda: check_tensor(x, "bcast"))
    value: torch.Tensor
    if c.rank == root and x is not None and needs_gradient(x):
        value = _Bcast.apply((c, slot, root, True), x)
    else:
        value = _Bcast.apply((c, slot, root, False), x if c.rank == root else None, ANCHOR)
    return value


def gather(
    c: Communicator, x: torch.Tensor, root: int = 0
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """All ranks' tensors as a tuple at the root; elsewhere a delegate (see `send`).

    They are in the order of ranks, and their shapes may differ.

    Backward: each rank gets the gradient of its own tensor from the root. On the other ranks
    backward must reach the delegate. All ranks of c call it. Raises CommunicationError at the root
    if dtypes differ. After `chainermn.functions.gather` (Akiba et al. 2017).
    """
    root = c.check_rank(root, "gather", "root")
    slot = c.next_call()
    c.run_checked(slot, "gather", lambda: check_tensor(x, "gather"))
    gathered: tuple[torch.Tensor, ...] = (
        _Gather.apply((c, slot, root, True), x)
        if needs_gradient(x)
        else _Gather.apply((c, slot, root, False), x, ANCHOR)
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
    slot = c.next_call()
    if c.rank != root:
        came: torch.Tensor = _Scatter.apply((c, slot, root, ()), ANCHOR)
        return came
    parts = c.run_checked(slot, "scatter", lambda: check_tensors(xs, "scatter", c.size))
    wanted = [needs_gradient(x) for x in parts]
    own: torch.Tensor = _Scatter.apply(
        (c, slot, root, wanted), *parts, *([] if any(wanted) else [ANCHOR])
    )
    return own


def allgather(c: Communicator, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A tuple of all ranks' tensors, in the order of ranks, on all ranks.

    Shapes may differ, dtypes must not.

    Backward: rank r's x gets the sum, over all ranks, of the gradients of their copies of it: an
    all-to-all, then a sum (a reduce-scatter). All ranks of c call it. After
    `chainermn.functions.allgather` (Akiba et al. 2017).
    """
    slot = c.next_call()
    c.run_checked(slot, "allgather", lambda: check_tensor(x, "allgather"))
    gathered: tuple[torch.Tensor, ...] = (
        _Allgather.apply((c, slot, True), x)
        if needs_gradient(x)
        else _Allgather.apply((c, slot, False), x, ANCHOR)
    )
    return gathered


def alltoall(c: Communicator, xs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """A tuple whose item j is the tensor that rank j has for this rank: rank j's `xs[this rank]`.

    Shapes may differ, dtypes must not.

    Backward: an all-to-all of the gradients. All ranks of c call it. After
    `chainermn.functions.alltoall` (Akiba et al. 2017).
    """
    slot = c.next_call()
    parts = c.run_checked(slot, "alltoall", lambda: check_tensors(xs, "alltoall", c.size))
    wanted = [needs_gradient(x) for x in parts]
    anchor = [] if any(wanted) else [ANCHOR]
    theirs: tuple[torch.Tensor, ...] = _Alltoall.apply((c, slot, wanted), *parts, *anchor)
    return theirs


def allreduce(c: Communicator, x: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' tensors, on all ranks.

    Shapes and dtypes must agree.

    Forward and backward: reduce-scatter, then all-gather. Backward: every rank's x gets the sum
    over all ranks of the gradients; so the backward of all ranks must pass through it. All ranks of
    c call it.
    """
    slot = c.next_call()
    c.run_checked(slot, "allreduce", lambda: check_tensor(x, "allreduce"))
    total: torch.Tensor = _Allreduce.apply(c, slot, ANCHOR, x, torch.is_grad_enabled())
    return total
