"""The half of unit 13's checks that runs on the ranks.

It compares the learner's functions with one whole nn.Conv2d. Every experiment returns plain data.
What the right answer is, and which mistake a wrong answer looks like, is determined here, where the
tensors are, and `diagnosis` has the text for it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn.functional import conv2d, relu

from manyhands.checks.by_hand import closed
from manyhands.checks.channel_parallel import diagnosis
from manyhands.checks.channel_parallel.case_ranks import (
    Case,
    Traffic,
    communicators,
    compare,
    dealt,
    detached,
    lookalikes,
    own_first,
    usable,
    wrong_gradients,
)
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device, total
from manyhands.data import shard
from manyhands.ledger import models
from manyhands.links import parallel_conv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manyhands.checks.channel_parallel.answers import (
        Both,
        Cut,
        LayerAnswer,
        LayerCase,
        MovedAnswer,
        MovedCase,
        OperatorAnswer,
        OperatorCase,
        PairCase,
        PartCase,
        Result,
        Side,
    )
    from manyhands.comm.communicator import Communicator


def part(name: str, seed: int) -> list[PartCase]:
    """Ask for the learner's parts of weights and biases, without communication.

    The worlds have several sizes.
    """
    function, draw = learners(name), random.Random(seed)
    cases: list[PartCase] = []
    for size in (4, 3, 1):
        for split in ("out", "in"):
            conv = (
                nn.Conv2d(
                    size + draw.randint(1, 3), 2 * size + draw.randint(1, 3), 3, bias=size != 3
                )
                .double()
                .to(device())
            )
            with torch.no_grad():
                for number, tensor in enumerate(conv.parameters()):
                    tensor.copy_(
                        torch.arange(tensor.numel()).view(tensor.shape) * (1 + seed % 97) + number
                    )
            for rank in range(size):
                lent = copy.deepcopy(conv)  # the learner's code may do with it what it likes
                with closed(parallel_conv._shard):
                    answer = function(lent, split, rank, size)
                whole = [parameter.untyped_storage().data_ptr() for parameter in lent.parameters()]
                cases.append(
                    {
                        "split": split,
                        "rank": rank,
                        "size": size,
                        **_cut(answer, conv, split, rank, size, whole),
                    }
                )
    return cases


def _cut(
    answer: Any, conv: nn.Conv2d, split: str, rank: int, size: int, whole: Sequence[int] = ()
) -> Cut:
    answer = answer if isinstance(answer, (tuple, list)) and len(answer) == 2 else (answer, None)
    full, bias = conv.weight.detach(), None if conv.bias is None else conv.bias.detach()
    axis = 0 if split == "out" else 1
    n = full.shape[axis]
    here, even = shard(n, rank, size), slice(rank * (n // size), (rank + 1) * (n // size))
    take = lambda tensor, axis, index: tensor[index] if axis == 0 else tensor[:, index]  # noqa: E731
    wrong = {
        "dealt": take(full, axis, slice(rank, None, size)),
        "even": take(full, axis, even),
        "other axis": take(full, 1 - axis, shard(full.shape[1 - axis], rank, size)),
        "whole": full,
        "grouped": full[shard(full.shape[0], rank, size)][:, shard(full.shape[1], rank, size)],
    }
    results = [compare("weight", answer[0], take(full, axis, here), wrong)]
    if bias is None:
        results.append(
            {
                "name": "bias",
                "right": answer[1] is None,
                "looks": "bias made up",
                "sample": [answer[1] is None],
                "wanted": [True],
            }
        )
    else:
        wrong = {
            "whole bias": bias,
            "cut bias": bias[shard(len(bias), rank, size)],
            "dealt": bias[rank::size],
            "even": bias[even],
        }
        results.append(compare("bias", answer[1], bias[here] if split == "out" else bias, wrong))
    return {
        "results": results,
        "whole": full.numel(),
        "held": [_held(tensor, whole) for tensor in answer],
    }


def _held(tensor: Any, whole: Sequence[int]) -> list[Any]:
    """Return how a tensor is held.

    This is [is trained, is an nn.Parameter, shares memory with the `whole` layer, bytes that it
    keeps alive without need].
    """
    if not isinstance(tensor, torch.Tensor):
        return [True, True, False, 0]
    memory = tensor.untyped_storage()
    return [
        tensor.is_leaf and tensor.requires_grad,
        isinstance(tensor, nn.Parameter),
        memory.data_ptr() in whole,
        memory.nbytes() - tensor.numel() * tensor.element_size(),
    ]


def operators(copy_name: str, sum_name: str, join_name: str, seed: int) -> list[OperatorCase]:
    """Run forward and backward of the three operators on each group, and count bytes."""
    functions = {
        "copy": learners(copy_name),
        "sum": learners(sum_name),
        "join": learners(join_name),
    }
    with communicators() as groups:
        return [
            {"members": members, **_operator(which, function, seed, c)}
            for members, c in groups
            for which, function in functions.items()
        ]


def _operator(
    which: str, function: Callable[..., Any], seed: int, c: Communicator
) -> OperatorAnswer:
    chance = torch.Generator().manual_seed(seed + 7 * c.size)
    channels = 2 * c.size + 1
    height = 3 + random.Random(seed).randint(1, 6)

    def draw() -> torch.Tensor:
        return torch.randn(2, channels, height, 4, generator=chance, dtype=torch.float64).to(
            device()
        )

    everyones, slopes = [draw() for _ in range(c.size)], [draw() for _ in range(c.size)]
    rows = [shard(channels, rank, c.size) for rank in range(c.size)]
    mine, added, slope = everyones[c.rank], total(everyones), slopes[0]
    wrong: dict[str, torch.Tensor | None]
    if which == "copy":
        x, right, slope, gradient = everyones[0], everyones[0], slopes[c.rank], total(slopes)
        wrong, wrong_gradient = (
            {"times": added},
            {"own": slope, "mean": gradient / c.size, "times": gradient * c.size},
        )
    elif which == "sum":
        x, right, gradient = mine, added, slope
        wrong, wrong_gradient = (
            {"mean": added / c.size, "own": mine},
            {"times": slope * c.size, "divided": slope / c.size},
        )
    else:
        parts = [everyones[0][:, row] for row in rows]
        x, right, gradient = parts[c.rank], everyones[0], slope[:, rows[c.rank]]
        wrong = {
            "dealt": dealt(parts),
            "reversed": torch.cat(parts[::-1], 1),
            "own": parts[c.rank],
            "own first": own_first(parts, c.rank),
        }
        wrong_gradient = {"times": gradient * c.size, "divided": gradient / c.size, "whole": slope}
    x = x.clone().requires_grad_()
    return {
        "which": which,
        "rank": c.rank,
        "size": c.size,
        "numel": right.numel(),
        **_both_ways(lambda: function(x, c), x, right, slope, gradient, wrong, wrong_gradient, c),
    }


def _both_ways(
    call: Callable[[], Any],
    x: torch.Tensor,
    right: torch.Tensor,
    slope: torch.Tensor,
    gradient: torch.Tensor,
    wrong: Mapping[str, torch.Tensor | None],
    wrong_gradient: Mapping[str, torch.Tensor | None],
    c: Communicator,
) -> Both:
    given, handed = x.detach().clone(), slope.clone()
    with Traffic() as forward:
        y = call()
    answer: Both = {
        "results": [_untouched(compare("y", y, right, wrong), x, given)],
        "forward": forward.sent,
        "backward": None,
        "detached": detached(y),
    }
    if usable(y, right, c):
        with Traffic() as backward:
            y.backward(handed)
        answer["results"].append(
            _untouched(compare("x", x.grad, gradient, wrong_gradient), handed, slope)
        )
        answer["backward"] = backward.sent
    return answer


def _untouched(result: Result, tensor: torch.Tensor, before: torch.Tensor) -> Result:
    """Return a comparison that is also wrong if the operator has written into its tensor."""
    if not result["right"] or torch.equal(tensor.detach(), before):
        return result
    return {**result, "right": False, "looks": "in place"}


def layer(name: str, split: str, seed: int) -> list[LayerCase]:
    """Compare the learner's layer with the whole layer, on each group.

    Values, gradients and bytes are compared.
    """
    function = learners(name)
    with communicators() as groups:
        return [
            {
                "members": members,
                "number": number,
                **_layer(function, Case(seed, split, c.size, number), c),
            }
            for members, c in groups
            for number in ((0, 1) if c.size == 4 else (c.size % 2,))
        ]


def _layer(function: Callable[..., Any], case: Case, c: Communicator) -> LayerAnswer:
    given = case.pieces(c.rank)
    with Traffic() as forward:
        y = function(*given, c, case.stride, case.padding)
    answer: LayerAnswer = {
        "rank": c.rank,
        "size": c.size,
        "results": [compare("output", y, case.y, lookalikes(case, c.rank))],
        "detached": detached(y),
        "forward": forward.sent,
        "backward": None,
        "numel": {"x": case.x.numel(), "y": case.y.numel()},
        "gradients": [],
    }
    if usable(y, case.y, c):
        with Traffic() as backward:
            (y * case.slope).sum().backward()
        answer["backward"] = backward.sent
        for label, tensor, right, wrong in zip(
            ("x", "weight", "bias"),
            given,
            case.serial(c.rank),
            wrong_gradients(case, c.rank),
            strict=True,
        ):
            if right is not None:
                answer["gradients"].append(compare(label, tensor.grad, right, wrong))
    return answer


def pair(name: str, seed: int) -> list[PairCase]:
    """Run two layers with a ReLU between them, on each group.

    The first is split by output and the second by input channel.
    """
    function = learners(name)
    with communicators() as groups:
        return [{"members": members, **_pair(function, seed, c)} for members, c in groups]


def _pair(function: Callable[..., Any], seed: int, c: Communicator) -> LayerAnswer:
    chance = torch.Generator().manual_seed(seed + 11 * c.size)
    middle, few, height = 5 * c.size + 1, 3, 4 + random.Random(seed).randint(1, 6)
    padding = {4: 1, 3: 0, 2: 2}[c.size]
    grown = 4 * padding - 4  # by two layers of 3 x 3
    shapes = (
        (2, few, height, 6),
        (middle, few, 3, 3),
        (middle,),
        (few, middle, 3, 3),
        (few,),
        (2, few, height + grown, 6 + grown),
    )
    x, *parameters, slope = [
        torch.randn(shape, generator=chance, dtype=torch.float64).to(device()) / 2
        for shape in shapes
    ]
    layers: Callable[..., torch.Tensor] = _two_layers
    whole = [tensor.clone().requires_grad_() for tensor in (x, *parameters)]
    right = layers(*whole, padding)
    right.backward(slope)
    right = right.detach()
    rows = shard(middle, c.rank, c.size)
    cuts: tuple[Any, ...] = (slice(None), rows, rows, (slice(None), rows), slice(None))
    given = [
        tensor[cut].clone().requires_grad_()
        for tensor, cut in zip((x, *parameters), cuts, strict=True)
    ]
    own = [piece.detach().clone().requires_grad_() for piece in given]
    alone = layers(*own, padding)
    alone.backward(slope)
    bias = parameters[3][:, None, None]
    wrong = {
        "own part": alone.detach(),
        "bias on each": right + (c.size - 1) * bias,
        "no bias": right - bias,
        "mean": (right - bias) / c.size + bias,
        "no relu": layers(x, *parameters, padding, between=lambda h: h),
    }
    with Traffic() as forward:
        y = function(given[0], given[1:3], given[3:], c, padding)
    answer: LayerAnswer = {
        "rank": c.rank,
        "size": c.size,
        "results": [compare("output", y, right, wrong)],
        "forward": forward.sent,
        "backward": None,
        "detached": detached(y),
        "gradients": [],
        "numel": {"x": x.numel(), "y": right.numel()},
    }
    if usable(y, right, c):
        with Traffic() as backward:
            (y * slope).sum().backward()
        answer["backward"] = backward.sent
        for label, tensor, leaf, cut, mine in zip(
            ("x", "first weight", "first bias", "second weight", "second bias"),
            given,
            whole,
            cuts,
            own,
            strict=True,
        ):
            gradient = cast("torch.Tensor", leaf.grad)[cut]
            own_part = cast("torch.Tensor", mine.grad)
            partly = (
                {} if label != "x" else {"partial": own_part, "partial, times": own_part * c.size}
            )
            answer["gradients"].append(
                compare(
                    label,
                    tensor.grad,
                    gradient,
                    {"times": gradient * c.size, "divided": gradient / c.size, **partly},
                )
            )
    return answer


def _two_layers(
    x: torch.Tensor,
    first: torch.Tensor,
    first_bias: torch.Tensor,
    second: torch.Tensor,
    second_bias: torch.Tensor,
    padding: int,
    between: Callable[[torch.Tensor], torch.Tensor] = relu,
) -> torch.Tensor:
    return conv2d(
        between(conv2d(x, first, first_bias, padding=padding)), second, second_bias, padding=padding
    )


def moved(name: str, side_name: str, seed: int) -> MovedAnswer:
    """Return what the learner predicts, and the bytes that a right layer sends.

    They are the bytes of all ranks together.
    """
    from manyhands import functions

    predict, largest_side, draw = learners(name), learners(side_name), random.Random(seed)
    cases: list[MovedCase] = []
    with communicators() as groups:
        for members, c in groups:
            batch, c_in, c_out, side, kernel = draw_layer(random.Random(f"{seed} {c.size}"))
            x, weight = (
                torch.zeros(batch, c_in, side, side, device=device()),
                torch.zeros(c_out, c_in, kernel, kernel, device=device()),
            )
            y = torch.zeros(batch, c_out, side, side, device=device())
            part = y[:, shard(c_out, c.rank, c.size)]
            runs = {
                "out": (
                    partial(functions.allgather, c, part.contiguous()),
                    partial(c.allreduce, x),
                ),
                "in": (partial(c.allreduce, y),),
                "pair": (partial(c.allreduce, y), partial(c.allreduce, x)),
                "data": (partial(c.allreduce, weight),),
            }
            for way, calls in runs.items():
                with Traffic() as traffic:
                    for call in calls:
                        call()
                with closed(models.steps, diagnosis.sum_bytes, diagnosis.join_bytes):
                    predicted = plain(
                        predict(way, tuple(x.shape), tuple(weight.shape), tuple(y.shape), c.size)
                    )
                cases.append(
                    {
                        "members": members,
                        "way": way,
                        "size": c.size,
                        "x": list(x.shape),
                        "weight": list(weight.shape),
                        "y": list(y.shape),
                        "sent": traffic.sent[0],
                        "predicted": predicted,
                    }
                )
    asked = [draw_layer(draw) for _ in range(6)]
    # there both move the same
    asked += [
        (batch, batch * draw.choice((4, 9)), c_out, side, kernel)
        for batch, _, c_out, side, kernel in asked[:3]
    ]
    sides: list[Side] = [
        {
            "asked": [batch, c_in, c_out, kernel],
            "got": plain(largest_side(batch, c_in, c_out, kernel)),
        }
        for batch, c_in, c_out, _, kernel in asked
    ]
    return {"cases": cases, "sides": sides}


def plain(number: Any) -> Any:
    """Return a number of NumPy as a number of Python, and everything else as it is."""
    return (
        int(number)
        if isinstance(number, Integral)
        else float(number)
        if isinstance(number, Real)
        else number
    )


def draw_layer(draw: random.Random) -> tuple[int, int, int, int, int]:
    """Draw (batch, input channels, output channels, side, kernel)."""
    return (
        draw.randint(2, 5),
        draw.randint(9, 30),
        draw.randint(33, 50),
        draw.choice((7, 8)),
        draw.choice((1, 3, 5)),
    )
