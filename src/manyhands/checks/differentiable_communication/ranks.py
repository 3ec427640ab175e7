"""Run unit 11's experiments with the learner's functions on the ranks, and return plain numbers.

Each public function is one experiment. All ranks run it simultaneously, and shapes and numbers are
drawn from the seed in the same way on all ranks, so that each rank can also compute alone what a
single process would get. Everything is float64.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import (
    GROUPS,
    device,
    device_of_any_call,
    fresh_world,
    make_groups,
    numbers,
    short_lived,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from manyhands.checks.differentiable_communication.answers import (
        AllgatherCase,
        BroadcastCase,
        ConnectCase,
        Connected,
        MessageCase,
        OrderCase,
        RingCase,
    )
    from manyhands.comm.communicator import Communicator


def draw(seed: int, *shape: int, where: str | torch.device = "cpu") -> torch.Tensor:
    """Draw numbers between -1 and 1, the same on all ranks."""
    return (
        torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2
        - 1
    ).to(where)


def message_groups() -> list[tuple[list[int], dist.ProcessGroup | None]]:
    """Make groups as `make_groups` does.

    If the world uses NCCL, which has no tags, make gloo groups for tensors on the CPU.
    """
    if dist.get_backend() == "gloo":
        return make_groups()
    groups = [(members, short_lived(dist.new_group(members, backend="gloo"))) for members in GROUPS]
    return [
        (members, cast("dist.ProcessGroup", group))
        for members, group in groups
        if dist.get_rank() in members
    ]


def matrix_shape(seed: int) -> tuple[int, int]:
    """Draw two different sizes, so that a transposed gradient is not contiguous."""
    chooser = random.Random(seed)
    rows = chooser.randint(2, 9)
    return rows, rows + chooser.randint(1, 5)


def leaf(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of the tensor that requires a gradient."""
    return tensor.detach().clone().requires_grad_()


def gradient_of(tensor: torch.Tensor) -> list[float] | None:
    """Return a tensor's gradient as a list of numbers, or None if it has none."""
    return None if tensor.grad is None else numbers(tensor.grad)


def counted(backward: Callable[[], object]) -> float:
    """Run `backward` under the ledger, and return how many numbers this rank has sent.

    A number has 8 bytes.
    """
    from manyhands.ledger import Ledger

    with Ledger() as ledger:
        backward()
        learners("settle")()
    return ledger.bytes_sent / 8


# ------------------------------------------------------------------ 1: send and recv


def functions_of(*names: str) -> list[Any]:
    """Return the learner's functions, with nothing posted.

    No rank receives any more what an earlier attempt has posted and not settled.
    """
    learners("posted").clear()
    return [learners(name) for name in names]


@fresh_world()
def round_trips(send_name: str, recv_name: str, seed: int) -> list[MessageCase]:
    """Let the group's rank 0 send a matrix to each other rank and get it back, multiplied.

    Each pair of calls is joined by its delegate.
    """
    Send, Recv = functions_of(send_name, recv_name)
    results: list[MessageCase] = []
    world, *smaller = message_groups()
    # first the group in which a rank of the world that is named by mistake is no member, so that
    # nobody waits for it
    for members, group in (world, *smaller[::-1]):
        me, p, shape = dist.get_rank(group), len(members), matrix_shape(seed)
        x, factors = draw(seed, *shape), [draw(seed + 1 + r, *shape) for r in range(p)]
        weights = [draw(seed + 100 + r, *reversed(shape)) for r in range(p)]
        mine = leaf(x if me == 0 else factors[me])
        if me == 0:
            loss = torch.zeros((), dtype=torch.float64)
            for r in range(1, p):
                delegate = Send.apply(mine, r, 2 * r, group)
                came = Recv.apply(delegate, shape, torch.float64, r, 2 * r + 1, group)
                loss = loss + (came.T * weights[r]).sum()
        else:
            start = torch.zeros((), dtype=torch.float64, requires_grad=True)
            came = Recv.apply(start, shape, torch.float64, 0, 2 * me, group)
            loss = Send.apply(mine * came, 0, 2 * me + 1, group)
        sent = counted(loss.backward)
        alone = [weights[r].T * factors[r] for r in range(1, p)]
        serial = total(alone) if me == 0 else weights[me].T * x
        # by how much it is larger if each gradient that arrives is 1 too large
        ones = total(factors[1:]) if me == 0 else x
        results.append(
            {
                "members": members,
                "got": gradient_of(mine),
                "serial": numbers(serial),
                "sent": sent,
                "right": x.numel() * (p - 1 if me == 0 else 1),
                "parts": [numbers(part) for part in alone],
                "with the delegate's": numbers(serial + ones),
            }
        )
    return results


@fresh_world()
def other_order(send_name: str, recv_name: str, seed: int) -> OrderCase:
    """Send two messages from rank 0 to 1 and two from rank 3 to 2.

    The two sides run their backward passes in opposite orders.
    """
    (Send, Recv), rank = functions_of(send_name, recv_name), dist.get_rank()
    group = message_groups()[0][1]  # of all ranks
    tags, shape = random.Random(seed).sample(range(1, 50), 2), matrix_shape(seed)
    weights = [draw(seed + i, *shape) for i in (1, 2)]
    # which backward is given, and must leave as they are
    gradients = [weight.clone() for weight in weights]
    peer = rank ^ 1
    got: list[list[float] | None] | None
    if rank in (0, 3):
        tensors = [leaf(draw(seed + 10 + i, *shape)) for i in (1, 2)]
        delegates = [
            Send.apply(tensor, peer, tag, group) for tensor, tag in zip(tensors, tags, strict=True)
        ]
        for delegate in reversed(delegates):
            delegate.backward()
        got = [gradient_of(tensor) for tensor in tensors]
    else:
        start = torch.zeros((), dtype=torch.float64, requires_grad=True)
        came = [Recv.apply(start, shape, torch.float64, peer, tag, group) for tag in tags]
        for tensor, gradient in zip(came, gradients, strict=True):
            tensor.backward(gradient)
        got = None
    learners("settle")()
    spoiled = any(
        not torch.equal(gradient, weight)
        for gradient, weight in zip(gradients, weights, strict=True)
    )
    return {
        "got": got,
        "serial": [numbers(weight) for weight in weights],
        "spoiled": float(spoiled),
    }


# ------------------------------------------------------------------ 2 and 3: broadcast and
# allgather


@fresh_world()
def broadcast(name: str, seed: int) -> list[BroadcastCase]:
    """Broadcast from every root of every group, and return the gradients of a weighted sum.

    The sum is over what arrived, with different weights on each rank.

    The gradient that backward is given is kept here, and must not change. It is transposed on some
    ranks and contiguous on the others, or one number that is expanded, as the gradient of a plain
    sum is.
    """
    Bcast = learners(name)
    results: list[BroadcastCase] = []
    for members, group in make_groups():
        me, p, shape = dist.get_rank(group), len(members), matrix_shape(seed)
        for root, kind in [
            *((root, "of both layouts") for root in range(p)),
            (random.Random(seed).randrange(p), "expanded"),
        ]:
            gradients = [
                gradient_as(
                    "expanded" if kind == "expanded" else LAYOUTS[(r + (root == 0)) % 2],
                    1000 * seed + 10 * root + r,
                    shape,
                )
                for r in range(p)
            ]
            own, by_memory, x = (
                [numbers(gradient) for gradient in gradients],
                added_in_memory(gradients, me),
                leaf(draw(seed + me, *shape, where=device())),
            )
            y = Bcast.apply(x, root, group)
            sent = counted(partial(y.backward, gradients[me]))
            results.append(
                {
                    "members": members,
                    "root": root,
                    "kind": kind,
                    "me": me,
                    "got": gradient_of(x),
                    "sent": sent,
                    "size": x.numel(),
                    "spoiled": float(numbers(gradients[me]) != own[me]),
                    "own": own,
                    "by memory": by_memory,
                }
            )
    return results


LAYOUTS = ("transposed", "contiguous")


def gradient_as(layout: str, seed: int, shape: tuple[int, int]) -> torch.Tensor:
    """Draw a gradient of this shape in one of three layouts.

    It is "contiguous", "transposed" in memory, or one number "expanded", behind which there is room
    for all.
    """
    drawn = draw(seed, *reversed(shape), where=device())
    if layout == "expanded":
        return drawn.as_strided(shape, (0, 0))
    return drawn.T if layout == "transposed" else drawn.T.contiguous()


def added_in_memory(gradients: Sequence[torch.Tensor], me: int) -> list[float]:
    """Return the sum as it looks in this rank's gradient if memory is added up.

    Then numbers are added in the order in which they are stored.
    """
    rows, columns = gradients[me].shape
    lying = [
        gradient.T.flatten() if gradient.stride()[0] == 1 else gradient.flatten()
        for gradient in gradients
    ]
    return numbers(
        total(lying).view(columns, rows).T if gradients[me].stride()[0] == 1 else total(lying)
    )


@fresh_world()
def allgather(name: str, seed: int) -> list[AllgatherCase]:
    """Run a weighted sum of all pieces in each group, and return the gradients.

    Each piece has different weights on each rank, and one of the pieces is not used. Then use
    gradients that the caller keeps, of both layouts, and one gradient for several pieces.
    """
    Allgather = learners(name)
    results: list[AllgatherCase] = []
    for members, group in make_groups():
        me, p, shape = dist.get_rank(group), len(members), matrix_shape(seed)
        unused = random.Random(seed).randrange(p)  # rank 0 of the group does not use this piece
        for kind in ("of a loss", "kept", "one for all"):
            gradients = [
                _gradients_of_pieces(kind, 1000 * seed + 10 * r, r, p, shape) for r in range(p)
            ]
            if kind == "of a loss":
                gradients[0][unused] = torch.zeros_like(gradients[0][unused])
            own = [[numbers(gradient) for gradient in row] for row in gradients]
            by_memory, x = (
                added_in_memory([row[me] for row in gradients], me),
                leaf(draw(seed + me, *shape, where=device())),
            )
            pieces = Allgather.apply(x, group)
            if kind == "of a loss":
                loss = total(
                    (pieces[j].T * gradients[me][j].T).sum()
                    for j in range(p)
                    if (me, j) != (0, unused)
                )
                sent = counted(loss.backward)
            else:
                sent = counted(partial(torch.autograd.backward, pieces, gradients[me]))
            results.append(
                {
                    "members": members,
                    "kind": kind,
                    "me": me,
                    "got": gradient_of(x),
                    "sent": sent,
                    "size": x.numel(),
                    "by memory": by_memory,
                    "spoiled": float([numbers(gradient) for gradient in gradients[me]] != own[me]),
                    "own": own,
                }
            )
    return results


def _gradients_of_pieces(
    kind: str, seed: int, rank: int, p: int, shape: tuple[int, int]
) -> list[torch.Tensor]:
    """Return a gradient for each piece, in one of three ways.

    They are drawn for each piece, or the first one has one layout and all others share a second one
    in the other layout, or all share one expanded number.
    """
    if kind == "one for all":
        return [gradient_as("expanded", seed, shape)] * p
    if kind == "of a loss":
        return [gradient_as("transposed", seed + j, shape) for j in range(p)]
    first, other = (gradient_as(LAYOUTS[(rank + j) % 2], seed + j, shape) for j in (0, 1))
    return [first, *[other] * (p - 1)]


# ------------------------------------------------------------------ 4: connect the graph


def connect(part: str, name: str, seed: int) -> list[ConnectCase]:
    """Run the learner's function on communicators of 4, 3 and 2 ranks.

    The gradients of this rank's layers are compared with a single process.
    """
    from manyhands import comm

    program = {"round-trip": _round_trip, "fan-out": _fan_out}[part]
    function = learners(name)
    results: list[ConnectCase] = []
    # a new one, in which earlier errors are not reported
    world = comm.create_communicator(timeout_s=2)
    parts = [
        (members, world.split(0 if world.rank in members else None, key=world.rank))
        for members in GROUPS
    ]
    for members, c in parts:
        mine: list[ConnectCase] = (
            []
            if c is None
            else [
                {
                    "members": members,
                    "me": c.rank,
                    **_attempt(partial(program, c, function, seed)),
                }
            ]
        )
        dist.barrier()  # of torch, because after an error the ranks are not in step
        # an error may be reported only in the next call
        late: Connected | None = _attempt(c.barrier) if c is not None else None
        mine = [{**case, **late} for case in mine] if late else mine
        results += mine
        failed = torch.tensor(
            [float(any("error" in case or None in case["got"].values() for case in mine))],
            device=device(),
        )
        dist.all_reduce(failed)
        if failed.item():
            break
    world.close()
    return results


def _attempt(program: Callable[[], Any]) -> Any:
    from manyhands import comm

    try:
        return program()
    except comm.CommunicationError as error:
        return {"error": str(error)}


def _layers(p: int, seed: int) -> tuple[list[torch.nn.Linear], torch.Tensor]:
    """Make a layer for each rank and one more, the same on all ranks, and an input."""
    torch.manual_seed(seed)
    return [torch.nn.Linear(3, 3, dtype=torch.float64).to(device()) for _ in range(p + 1)], draw(
        seed, 4, 3, where=device()
    )


def _compare_gradients(
    gradients: Mapping[str, torch.Tensor | None], reference: Mapping[str, Any]
) -> Connected:
    return {
        "got": {name: None if g is None else numbers(g) for name, g in gradients.items()},
        "serial": {name: numbers(reference[name]) for name in gradients},
    }


def _round_trip(c: Communicator, function: Callable[..., Any], seed: int) -> Connected:
    (layers, x), (alone, _) = _layers(c.size, seed), _layers(c.size, seed)
    out = x
    for layer in alone:
        out = layer(out)
    weights = draw(seed + 7, 4, 3, where=device())
    (out * weights).sum().backward()
    start = function(c, x, layers[c.rank], layers[-1])
    leads = _leads_to(start, "_SendBackward" if c.rank == 0 else "_RecvBackward")
    value: list[float] | None
    if c.rank == 0:
        value = numbers(start)
        (start * weights).sum().backward()
    else:
        value = None
        start.backward()
    mine = {
        "stage": layers[c.rank].weight.grad,
        **({"last": layers[-1].weight.grad} if c.rank == 0 else {}),
    }
    connected = _compare_gradients(
        mine, {"stage": alone[c.rank].weight.grad, "last": alone[-1].weight.grad}
    )
    return {
        **connected,
        "value": value,
        "serial value": numbers(out) if c.rank == 0 else None,
        "leads": leads,
    }


def _leads_to(tensor: Any, name: str) -> bool:
    """Return whether backward from a tensor reaches a step of this name."""
    todo, seen = [getattr(tensor, "grad_fn", None)], set()
    while todo:
        step = todo.pop()
        if step is not None and step not in seen:
            seen.add(step)
            if step.name() == name:
                return True
            todo += [before for before, _ in step.next_functions]
    return False


def _fan_out(c: Communicator, function: Callable[..., Any], seed: int) -> Connected:
    weights = [draw(seed + 20 + r, 3, where=device()) for r in range(c.size)]
    own, sources = (
        leaf(draw(seed, 3, where=device())),
        [leaf(draw(seed + 1 + r, 3, where=device())) for r in range(c.size)],
    )
    if c.rank == 0:
        loss = (own * weights[0]).sum()
        right = numbers(loss)  # before the learner's code has it
        result = function(c, [2 * source for source in sources], loss)
        value = numbers(result)
        result.backward()
        names = {"own loss": own, **{f"piece {r}": sources[r] for r in range(1, c.size)}}
        reference = {
            "own loss": weights[0],
            **{f"piece {r}": 2 * weights[r] for r in range(1, c.size)},
        }
    else:
        piece = function(c, None, None)
        value, right, names, reference = numbers(piece), numbers(2 * sources[c.rank]), {}, {}
        (piece * weights[c.rank]).sum().backward()
    return {
        **_compare_gradients({name: tensor.grad for name, tensor in names.items()}, reference),
        "value": value,
        "serial value": right,
    }


# ------------------------------------------------------------------ 5: a ring for GPUs


@fresh_world()
def ring(name: str, seed: int) -> list[RingCase]:
    """Return for each group what the learner's ring brings to this rank, and its trace.

    The trace is what the ring asks of torch.distributed.
    """
    from manyhands.rehearsal.trace import dump
    from manyhands.rehearsal.trace_recorder import Recorder

    shift = learners(name)
    results: list[RingCase] = []
    for members, group in make_groups():
        me, shape = dist.get_rank(group), matrix_shape(seed)
        pieces = [draw(seed + r, *shape, where=device_of_any_call()) for r in range(len(members))]
        mine, recorder = pieces[me].clone(), Recorder(gpu_chosen=True)
        recorder.start()
        try:
            came = shift(mine, group)
        finally:
            trace = recorder.stop()
        fits = isinstance(came, torch.Tensor) and came.shape == pieces[me].shape
        results.append(
            {
                "members": members,
                "me": me,
                "got": numbers(came) if fits else None,
                "overwritten": float(not torch.equal(mine, pieces[me])),
                "pieces": [numbers(piece) for piece in pieces],
                "trace": dump(trace),
            }
        )
    return results
