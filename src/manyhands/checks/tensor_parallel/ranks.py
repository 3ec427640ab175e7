"""The half of unit 15's checks that runs on the ranks.

It compares the learner's layers, of which each rank has a part, with a single process that has all
of them. Every experiment returns plain data. What is right, and which mistake a wrong answer looks
like, is determined here, where the tensors are, and `diagnosis` has the text for it.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import short_lived, total
from manyhands.checks.tensor_parallel.compare_ranks import (
    compare,
    in_groups,
    leaf,
    learners_own,
    make_draw,
    one_sum,
    same,
    sum_of_memory,
    try_out,
)
from manyhands.data import shard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from manyhands.checks.tensor_parallel.answers import Cut, LayerCase, Piece, Refused

NOTHING = [0, 0]  # sent


def f_and_g(copy_name: str, sum_name: str, seed: int) -> list[LayerCase]:
    """Try `copy_to(x, group)` and `reduce_from(x, group)`.

    x and the gradient are different on each rank where the ranks may differ. In small groups the
    last rank's tensors are transposed, so that their numbers are not in order. "again": between
    forward and backward, the function is called for a different group.
    """
    functions = {
        "copy": learners(copy_name),
        "sum": learners(sum_name),
        "again": learners(copy_name),
    }
    cases: list[LayerCase] = []
    alone = [short_lived(dist.new_group([rank])) for rank in range(dist.get_world_size())][
        dist.get_rank()
    ]
    for members, group in in_groups():
        size, me, draw = (
            len(members),
            members.index(dist.get_rank()),
            random.Random(f"{seed} {members}"),
        )
        tensor = make_draw(draw.randrange(2**31))
        for which, function in functions.items():
            shape = draw.randint(2, 4), draw.randint(3, 5)
            xs, slopes = (
                [
                    tensor(*shape[::-1]).T if size < 4 and rank == members[-1] else tensor(*shape)
                    for rank in members
                ]
                for _ in range(2)
            )
            if which != "sum":
                x, slope, added = xs[0], slopes[me], total(slopes)
                right, sums = (x, added), [NOTHING, one_sum(added, group)]
                wrong = {"times": size * x}
                wrong_gradients = {
                    "own": slope,
                    "mean": added / size,
                    "times": size * added,
                    "strides": sum_of_memory(slopes, slope),
                }
            else:
                x, slope, added = xs[me], slopes[-1], total(xs)
                right, sums = (added, slope), [one_sum(added, group), NOTHING]
                wrong = {"own": x, "mean": added / size, "strides": sum_of_memory(xs, x)}
                wrong_gradients = {"times": size * slope, "divided": slope / size}
            case = try_out(
                lambda x, *, function=function, group=group: function(x, group),
                {"x": x.clone().requires_grad_()},
                right,
                slope,
                group,
                wrong,
                {"x": wrong_gradients},
                partial(_call_elsewhere, function, x, alone) if which == "again" else None,
                late=me == size - 1,
            )
            cases.append({"what": which, "sums": sums, **case})
    return cases


def _call_elsewhere(function: Callable[..., Any], x: torch.Tensor, group: Any) -> None:
    function(leaf(x), group)


def _lead(size: int) -> tuple[int, ...]:
    """The dimensions before the last one of x: one, two or three."""
    return {4: (2, 3), 3: (5,), 2: (2, 1, 3)}.get(size, (4,))


def column(name: str, seed: int) -> list[LayerCase]:
    """`column(x, w, b, group)`, with the whole x and the rank's columns of w and b."""
    function = learners(name)
    cases: list[LayerCase] = []
    for members, group in in_groups():
        size, me, draw = (
            len(members),
            members.index(dist.get_rank()),
            random.Random(f"{seed} {members}"),
        )
        tensor, width, columns = make_draw(draw.randrange(2**31)), draw.randint(3, 6), 2 * size
        lead = _lead(size)
        x, w, b, slope = (
            tensor(*lead, width),
            tensor(width, columns),
            tensor(columns),
            tensor(*lead, columns),
        )
        mine = [shard(columns, rank, size) for rank in range(size)]
        given = {"x": leaf(x), "w": leaf(w[:, mine[me]]), "b": leaf(b[mine[me]])}
        parts = [x @ w[:, block] + b[block] for block in mine]
        y, gx, gw, gb = _serial(lambda x, w, b: x @ w + b, (x, w, b), slope)
        own = slope[..., mine[me]]
        wrong = {
            "whole": y,
            "no bias": parts[me] - b[mine[me]],
            "summed": total(parts),
            "x summed": size * x @ w[:, mine[me]] + b[mine[me]],
        }
        gradients = {
            "x": {"own": own @ w[:, mine[me]].T, **_scaled(gx, size)},
            "w": _scaled(gw[:, mine[me]], size),
            "b": _scaled(gb[mine[me]], size),
        }
        right = y[..., mine[me]], gx, gw[:, mine[me]], gb[mine[me]]
        case = try_out(
            lambda *of, group=group: function(*of, group),
            given,
            right,
            own,
            group,
            wrong,
            gradients,
        )
        cases.append({"what": "column", "sums": [NOTHING, one_sum(x, group)], **case})
    return cases


def row(name: str, seed: int) -> list[LayerCase]:
    """Try `row(x, w, b, group)`.

    It gets the rank's columns of x, the rank's rows of w, and the whole b.
    """
    function = learners(name)
    cases: list[LayerCase] = []
    for members, group in in_groups():
        size, me, draw = (
            len(members),
            members.index(dist.get_rank()),
            random.Random(f"{seed} {members}"),
        )
        tensor, width, rows = make_draw(draw.randrange(2**31)), draw.randint(3, 6), 2 * size
        lead = _lead(size)
        x, w, b, slope = (
            tensor(*lead, rows),
            tensor(rows, width),
            tensor(width),
            tensor(*lead, width),
        )
        mine = shard(rows, me, size)
        given = {"x": leaf(x[..., mine]), "w": leaf(w[mine]), "b": leaf(b)}
        y, gx, gw, gb = _serial(lambda x, w, b: x @ w + b, (x, w, b), slope)
        part = x[..., mine] @ w[mine]
        wrong = {
            "bias on each": y + (size - 1) * b,
            "no bias": y - b,
            "own": part,
            "own and bias": part + b,
            "mean": (y - b) / size + b,
            "mean of all": y / size,
        }
        right = y, gx[..., mine], gw[mine], gb
        gradients = {
            name: _scaled(gradient, size) for name, gradient in zip("xwb", right[1:], strict=True)
        }
        case = try_out(
            lambda *of, group=group: function(*of, group),
            given,
            right,
            slope,
            group,
            wrong,
            gradients,
        )
        cases.append({"what": "row", "sums": [one_sum(y, group), NOTHING], **case})
    return cases


def mlp(name: str, seed: int) -> list[LayerCase]:
    """`mlp(x, up, up_bias, down, down_bias, group)`, two layers with tanh after each."""
    function = learners(name)
    cases: list[LayerCase] = []
    for members, group in in_groups():
        size, me, draw = (
            len(members),
            members.index(dist.get_rank()),
            random.Random(f"{seed} {members}"),
        )
        tensor, width, hidden, out = (
            make_draw(draw.randrange(2**31)),
            draw.randint(3, 6),
            2 * size,
            draw.randint(3, 6),
        )
        lead = _lead(size)
        x, up, up_bias = tensor(*lead, width), tensor(width, hidden), tensor(hidden)
        down, down_bias, slope = tensor(hidden, out), tensor(out), tensor(*lead, out)
        whole, mine = (x, up, up_bias, down, down_bias), shard(hidden, me, size)
        cut = (x, up[:, mine], up_bias[mine], down[mine], down_bias)
        given = dict(zip(("x", "up", "up_bias", "down", "down_bias"), map(leaf, cut), strict=True))
        y, *gradients = _serial(_two_layers, whole, slope)
        gx, gup, gup_bias, gdown, gdown_bias = gradients
        parts = [shard(hidden, r, size) for r in range(size)]
        inner = [torch.tanh(x @ up[:, part] + up_bias[part]) @ down[part] for part in parts]
        wrong = {
            "bias on each": torch.tanh(total(inner) + size * down_bias),
            "no bias": torch.tanh(total(inner)),
            "tanh before the sum": total(torch.tanh(part) for part in inner) + down_bias,
            "tanh and bias before the sum": total(torch.tanh(part + down_bias) for part in inner),
            "no tanh at the end": total(inner) + down_bias,
            "own and bias": torch.tanh(inner[me] + down_bias),
            "no tanh between": torch.tanh((x @ up + up_bias) @ down + down_bias),
        }
        others = total(inner) - inner[me]
        own = _serial(
            lambda x, *rest, others=others: torch.tanh(_inner(x, *rest) + others), cut, slope
        )[1]
        right = y, gx, gup[:, mine], gup_bias[mine], gdown[mine], gdown_bias
        scaled = {
            name: _scaled(gradient, size) for name, gradient in zip(given, right[1:], strict=True)
        }
        scaled["x"] = {"own": own, **scaled["x"]}
        case = try_out(
            lambda *of, group=group: function(*of, group), given, right, slope, group, wrong, scaled
        )
        cases.append({"what": "mlp", "sums": [one_sum(y, group), one_sum(x, group)], **case})
    return cases


def _inner(
    x: torch.Tensor,
    up: torch.Tensor,
    up_bias: torch.Tensor,
    down: torch.Tensor,
    down_bias: torch.Tensor,
) -> torch.Tensor:
    return torch.tanh(x @ up + up_bias) @ down + down_bias


def _two_layers(*whole: torch.Tensor) -> torch.Tensor:
    return torch.tanh(_inner(*whole))


def cut(name: str, seed: int) -> Cut:
    """Try `cut_heads(qkv, out, heads, rank, size)`, without communication.

    It is called for every rank of worlds of several sizes, and for heads that cannot be divided.
    """
    function, draw = learners(name), random.Random(seed)
    pieces: list[Piece] = []
    refused: list[Refused] = []
    for size in (4, 3, 2, 1):
        tensor, heads, head_size = (
            make_draw(draw.randrange(2**31)),
            size * draw.randint(2, 3),
            size * draw.randint(1, 2),
        )
        width = draw.randint(3, 7)
        qkv, out = tensor(width, 3 * heads * head_size), tensor(heads * head_size, width)
        for rank in range(size):
            right = _pieces(qkv, out, heads, rank, size)
            given = {"qkv": qkv.clone(), "out": out.clone()}
            with learners_own():
                answer = function(*given.values(), heads, rank, size)
            qkv_piece, out_piece = (
                answer if isinstance(answer, (tuple, list)) and len(answer) == 2 else (None, None)
            )
            touched = [
                name for name, whole in (("qkv", qkv), ("out", out)) if not same(given[name], whole)
            ]
            pieces.append(
                {
                    "size": size,
                    "heads": heads,
                    "rank": rank,
                    "touched": touched,
                    "results": [
                        compare("qkv", qkv_piece, right[0], _wrong_qkv(qkv, heads, rank, size)),
                        compare("out", out_piece, right[1], _wrong_out(out, heads, rank, size)),
                    ],
                    "held": [
                        _held(own, piece, given)
                        for own, piece in zip((qkv_piece, out_piece), right, strict=True)
                    ],
                }
            )
    for heads, size in ((draw.choice((5, 6, 7)), 4), (2, 4), (draw.choice((4, 8)), 3)):
        tensor, width = make_draw(draw.randrange(2**31)), 12  # the columns can be divided
        try:
            with learners_own():
                answer = function(
                    tensor(width, 3 * heads * 12), tensor(heads * 12, width), heads, 1, size
                )
            refused.append(
                {"heads": heads, "size": size, "error": None, "answer": type(answer).__name__}
            )
        except Exception as error:  # noqa: BLE001 - a learner's code may raise anything, and a stub was reported above
            refused.append(
                {
                    "heads": heads,
                    "size": size,
                    "error": type(error).__name__,
                    "answer": str(error)[:200],
                }
            )
    return {"pieces": pieces, "refused": refused}


def _pieces(
    qkv: torch.Tensor, out: torch.Tensor, heads: int, rank: int, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the right pieces of qkv and out.

    They are the columns of the rank's heads for each of q, k and v, next to each other, and the
    rows of out that belong to these heads.
    """
    mine = shard(heads, rank, size)
    columns = qkv.unflatten(1, (3, heads, -1))[:, :, mine].flatten(1)
    return columns, out.unflatten(0, (heads, -1))[mine].flatten(0, 1)


def _wrong_qkv(qkv: torch.Tensor, heads: int, rank: int, size: int) -> dict[str, torch.Tensor]:
    by_head = qkv.unflatten(1, (3, heads, -1))
    return {
        "one block": qkv.chunk(size, 1)[rank],
        "whole": qkv,
        "dealt": by_head[:, :, rank::size].flatten(1),
        "head by head": by_head[:, :, shard(heads, rank, size)].transpose(1, 2).flatten(1),
        "q alone": by_head[:, 0, shard(heads, rank, size)].flatten(1),
        "through heads": qkv.unflatten(1, (3, heads, -1)).chunk(size, 3)[rank].flatten(1),
    }


def _wrong_out(out: torch.Tensor, heads: int, rank: int, size: int) -> dict[str, torch.Tensor]:
    return {
        "whole": out,
        "columns": out.tensor_split(size, 1)[rank],
        "dealt": out.unflatten(0, (heads, -1))[rank::size].flatten(0, 1),
    }


def _held(
    piece: Any, right: torch.Tensor, given: Mapping[str, torch.Tensor]
) -> tuple[int, int, bool]:
    """Return how a piece is held.

    This is (numbers in the memory that a piece keeps, numbers that it needs, whether it shares the
    memory of what was given).
    """
    if not isinstance(piece, torch.Tensor):
        return -1, right.numel(), False
    memory = piece.untyped_storage()
    shared = memory.data_ptr() in [whole.untyped_storage().data_ptr() for whole in given.values()]
    return memory.nbytes() // piece.element_size(), right.numel(), shared


def attention(name: str, seed: int) -> list[LayerCase]:
    """`attention(x, qkv, out, heads, group)` with the rank's pieces of qkv and out."""
    function = learners(name)
    cases: list[LayerCase] = []
    for members, group in in_groups():
        size, me, draw = (
            len(members),
            members.index(dist.get_rank()),
            random.Random(f"{seed} {members}"),
        )
        tensor, width, per = (
            make_draw(draw.randrange(2**31)),
            draw.randint(3, 7),
            1 + (size + seed) % 3,
        )
        heads = per * size
        inner, places = heads * 12, draw.randint(4, 6)
        x, slope = (tensor(2, places, width) for _ in range(2))
        qkv, out = tensor(width, 3 * inner), tensor(inner, width)
        y, gx, gqkv, gout = _serial(
            lambda a, b, c, heads=heads: attend(a, b, c, heads), (x, qkv, out), slope
        )
        given = dict(
            zip(
                ("x", "qkv", "out"),
                map(leaf, (x, *_pieces(qkv, out, heads, me, size))),
                strict=True,
            )
        )
        pieces = [(x, *_pieces(qkv, out, heads, r, size), heads // size) for r in range(size)]
        wrong = {
            "own": attend(*pieces[me]),
            "mean": y / size,
            "not causal": attend(x, qkv, out, heads, mask=None),
            "mask after softmax": attend(x, qkv, out, heads, mask="after"),
            "mask of zeros": attend(x, qkv, out, heads, mask=0.0),
            "one later": attend(x, qkv, out, heads, later=2),
            "later only": attend(x.flip(1), qkv, out, heads).flip(1),
            "all heads here": total(attend(of[0], of[1], of[2], heads) for of in pieces),
            "not scaled": attend(x, qkv, out, heads, scale=1.0),
            "scaled by width": attend(x, qkv, out, heads, scale=width**-0.5),
            "scaled by all": attend(x, qkv, out, heads, scale=inner**-0.5),
            "softmax over queries": attend(x, qkv, out, heads, over=-2),
        }
        counts = [
            n
            for n in range(1, inner // size + 1)
            if inner // size % n == 0 and n not in (per, heads)
        ]
        wrong |= {
            f"heads {n}": total(attend(of[0], of[1], of[2], n) for of in pieces) for n in counts
        }
        own = _serial(attend, pieces[me][:3], slope, pieces[me][3])[1]
        right = y, gx, *_pieces(gqkv, gout, heads, me, size)
        gradients = {
            "x": {"own": own, **_scaled(gx, size)},
            "qkv": _scaled(right[2], size),
            "out": _scaled(right[3], size),
        }
        case = try_out(
            lambda *of, heads=heads, group=group: function(*of, heads, group),
            given,
            right,
            slope,
            group,
            wrong,
            gradients,
        )
        cases.append({"what": "attention", "sums": [one_sum(y, group), one_sum(x, group)], **case})
    return cases


def attend(
    x: torch.Tensor,
    qkv: torch.Tensor,
    out: torch.Tensor,
    heads: int,
    mask: float | str | None = -torch.inf,
    scale: float | None = None,
    over: int = -1,
    later: int = 1,
) -> torch.Tensor:
    """Return attention in a single process with these heads.

    `mask`: what the scores of later positions become, None for no mask, or "after" if later
    positions are masked only after softmax.
    """
    # each [rows, heads, places, head size]
    q, k, v = (x @ qkv).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(later)
    if isinstance(mask, float):
        scores = scores.masked_fill(hidden, mask)
    weights = scores.softmax(over)
    if mask == "after":
        weights = weights.masked_fill(hidden, 0.0)
    return (weights @ v).transpose(1, 2).flatten(2) @ out


def _serial(
    function: Callable[..., torch.Tensor],
    tensors: Sequence[torch.Tensor],
    slope: torch.Tensor,
    *rest: Any,
) -> tuple[torch.Tensor, ...]:
    """(output, gradient of each tensor) that a single process computes."""
    leaves = [leaf(tensor) for tensor in tensors]
    y = function(*leaves, *rest)
    y.backward(slope)
    return y.detach(), *(cast("torch.Tensor", tensor.grad) for tensor in leaves)


def _scaled(gradient: torch.Tensor, size: int) -> dict[str, torch.Tensor]:
    return {
        "times": gradient * size,
        "divided": gradient / size,
        "nothing summed": torch.zeros_like(gradient),
    }
