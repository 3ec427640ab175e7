"""Experiments of unit 03's checks that need torch: scatter and gather, reported in numbers.

There are no ranks here, because all replicas of DataParallel are in the notebook's own kernel,
where this module is imported when a check runs. Numbers and shapes are drawn from the seed, and
everything is float64. The "meta" device, whose tensors have a shape but no numbers, is a second
device that every machine has, so it shows without a GPU whether something was moved.

An experiment takes the learner's functions and the seed, and returns cases for `diagnosis`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch

from manyhands.checks.torch_dataparallel.diagnosis import case

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.torch_dataparallel.answers import Case

# rows and devices that give fewer pieces than devices
LESS = ((5, 4), (6, 5), (7, 5), (9, 8), (10, 8))


def numbers(draw: random.Random, *shape: int) -> torch.Tensor:
    """Draw whole numbers as a float64 tensor."""
    made = torch.Generator().manual_seed(draw.randrange(2**31))
    return torch.randint(-9, 10, shape, generator=made).double()


def to_plain(value: Any) -> Any:
    """Return any nesting of tensors as plain lists of types, shapes and numbers."""
    if isinstance(value, torch.Tensor):
        return [
            "tensor",
            list(value.shape),
            value.detach().cpu().tolist() if value.device.type != "meta" else "meta",
        ]
    if isinstance(value, dict):
        return ["dict", [[str(key), to_plain(value[key])] for key in sorted(value, key=str)]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [to_plain(item) for item in value]]
    return value if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors in a nesting, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    inside = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple))
        else ()
    )
    return [tensor for item in inside for tensor in tensors(item)]


def listed(answer: Any) -> Any:
    """Return the answer as a list if it has one item for each replica, and otherwise as it is."""
    return list(answer) if isinstance(answer, (list, tuple)) else answer


# ------------------------------------------------------------------ what is right, as
# nn.DataParallel does it


def cut(value: Any, k: int, deep: bool = True, lists: bool = False) -> list[Any]:
    """Return what nn.DataParallel's scatter gives k devices, without moving it.

    Two options make mistakes on purpose. With `deep=False`, containers inside the first one are not
    opened, and with `lists=True`, lists of anything are cut like tensors.
    """
    if isinstance(value, torch.Tensor):
        return list(value.chunk(k))
    if lists and isinstance(value, list) and value and not tensors(value):
        size = -(-len(value) // k)
        return [value[first : first + size] for first in range(0, len(value), size)]
    inner = (
        (lambda item: cut(item, k, lists=lists))
        if deep
        else (lambda item: cut(item, k) if isinstance(item, torch.Tensor) else [item] * k)
    )
    # what has the fewest pieces decides, as in nn.DataParallel
    if isinstance(value, (list, tuple)) and value:
        return [type(value)(piece) for piece in zip(*map(inner, value), strict=False)]
    if isinstance(value, dict) and value:
        return [
            dict(zip(value, piece, strict=True))
            for piece in zip(*map(inner, value.values()), strict=False)
        ]
    return [value] * k


def join(outputs: Any, by_position: bool = False) -> Any:
    """Return what nn.DataParallel's gather makes of the replicas' outputs.

    With `by_position`, it makes a mistake on purpose, and matches values of dicts in the order of
    their insertion.
    """
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(outputs) if first.dim() == 0 else torch.cat(outputs)
    if isinstance(first, dict):
        same = (
            zip(*(output.values() for output in outputs), strict=True)
            if by_position
            else ([output[key] for output in outputs] for key in first)
        )
        return {
            key: join(list(values), by_position) for key, values in zip(first, same, strict=True)
        }
    # the shortest output decides, as in nn.DataParallel
    return (
        None
        if first is None
        else type(first)(join(list(items), by_position) for items in zip(*outputs, strict=False))
    )


# ------------------------------------------------------------------ 1: scatter


def scatter_rows(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the rows that each replica gets, also if there are too few for all."""
    draw, cases = random.Random(seed), []
    odd = 4 * draw.randint(5, 9) + draw.randint(1, 2)
    for n, k in ((odd, 4), (3 * draw.randint(2, 5), 3), draw.choice(LESS), (2, draw.randint(3, 5))):
        x = numbers(draw, n, draw.randint(2, 3))
        got, right, share = listed(function(x, ["cpu"] * k)), cut(x, k), n // k
        split = x.tensor_split(k)
        wrong = [
            ("balanced", split),
            ("balanced", [piece for piece in split if len(piece)]),
            ("dealt", [x[i::k] for i in range(k)]),
            ("whole", [x] * k),
            ("dropped", x[: k * share].split(share) if share else []),
            ("rest to the last", [*x[: (k - 1) * share].split(share or 1), x[(k - 1) * share :]]),
            ("empty", right + [x[:0]] * (k - len(right))),
        ]
        sizes = (
            [
                len(piece) if isinstance(piece, torch.Tensor) and piece.dim() else None
                for piece in got
            ]
            if isinstance(got, list)
            else None
        )
        cases.append(
            case(
                to_plain(got),
                to_plain(right),
                [(name, to_plain(list(pieces))) for name, pieces in wrong],
                expected=[len(piece) for piece in right],
                shown=sizes,
                n=n,
                k=k,
            )
        )
    return cases


def nested_value(draw: random.Random, n: int) -> tuple[Any, ...]:
    """Draw tensors of n rows, and things that are not tensors.

    They are in a tuple that contains a dict and a list.
    """
    names = [draw.choice(("ant", "bee", "cat")) for _ in range(n)]
    return (
        numbers(draw, n, 2),
        {"mask": numbers(draw, n), "scale": draw.randint(2, 9), "names": names},
        [numbers(draw, n, 1), None, {}, ()],
        "train",
    )


def scatter_nested(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare what each replica gets of nested containers, also of what is not a tensor."""
    draw, cases = random.Random(seed + 1), []
    for n, k in ((3 * draw.randint(2, 4) + 1, 3), draw.choice(LESS)):
        value = nested_value(draw, n)
        for nested in (value, value[1]):
            right = cut(nested, k)
            got, wrong = (
                listed(function(nested, ["cpu"] * k)),
                {
                    "empty": [],
                    "not opened": cut(nested, k, deep=False),
                    "lists cut": cut(nested, k, lists=True),
                },
            )
            cases.append(
                case(
                    to_plain(got),
                    to_plain(right),
                    [(name, to_plain(what)) for name, what in wrong.items()],
                    n=n,
                    k=k,
                    pieces=len(right),
                )
            )
    x, few = numbers(draw, *draw.choice(LESS)[:1], 2), draw.choice(LESS)
    # the last ones decide
    mixed: tuple[tuple[Any, int], ...] = (
        (("train", {"scale": 2}, numbers(draw, few[0], 1)), few[1]),
        ([numbers(draw, 4), {"x": x}], 4),
    )
    for value, k in mixed:
        got, right = listed(function(value, ["cpu"] * k)), cut(value, k)
        cases.append(
            case(to_plain(got), to_plain(right), n=len(tensors(value)[-1]), k=k, pieces=len(right))
        )
    options = {"step": draw.randint(1, 99), "names": ["ant", draw.choice(("bee", "cat"))]}
    cases.append(
        case(
            to_plain(listed(function(options, ["cpu"] * 3))),
            to_plain([options] * 3),
            n=0,
            k=3,
            pieces=3,
        )
    )
    # any object will do that is no number and no word: deepcopy makes another one of it
    thing = random.Random(seed)
    got = listed(function((numbers(draw, 3, 1), {"what": thing}), ["cpu"] * 3))
    try:
        same: Any = [piece[1]["what"] is thing for piece in got]
    except (TypeError, KeyError, IndexError):
        same = "another structure"
    cases.append(case(same, [True] * 3, {"copied": [False] * 3}, n=3, k=3, pieces=3))
    return cases


def scatter_devices(function: Callable[..., Any], seed: int) -> list[Case]:
    """Look at the devices to which the pieces of a value have moved."""
    draw = random.Random(seed + 2)
    return [_places_of(function, draw, devices) for devices in orders(draw)]


def orders(draw: random.Random) -> list[list[str]]:
    """Draw lists of devices, of which the first or the last is not always the value's own."""
    return [
        ["cpu", "meta", "meta"],
        draw.choice((["meta", "cpu", "meta"], ["meta", "meta", "cpu"])),
        ["meta", "cpu", "cpu"],
    ]


def _places_of(function: Callable[..., Any], draw: random.Random, devices: list[str]) -> Case:
    value = (numbers(draw, 3 * draw.randint(3, 9) + 1, 2), {"mask": numbers(draw, 7)})
    answer = listed(function(value, devices))
    places = (
        [[tensor.device.type for tensor in tensors(item)] for item in answer]
        if isinstance(answer, list)
        else "no list"
    )
    wrong = {"not moved": [["cpu"] * 2] * 3, "all on the first": [[devices[0]] * 2] * 3}
    return case(places, [[device] * 2 for device in devices], wrong)


def scatter_gradient(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the gradient that reaches the value from its pieces."""
    draw = random.Random(seed + 3)
    x = numbers(draw, 3 * draw.randint(2, 4) + 1, 2).requires_grad_()
    weights = numbers(draw, *x.shape)
    pieces = tensors(function((x, 1), ["cpu"] * 3))
    linked = [piece for piece in pieces if piece.requires_grad]
    if sum(map(len, linked)) > len(x):
        return [case("other pieces", to_plain(weights))]
    if linked:
        # whatever the sizes of the pieces are
        own = weights[: sum(map(len, linked))].split([len(piece) for piece in linked])
        sum((piece * weight).sum() for piece, weight in zip(linked, own, strict=True)).backward()
    return [
        case(
            "None" if x.grad is None else to_plain(x.grad), to_plain(weights), {"detached": "None"}
        )
    ]


# ------------------------------------------------------------------ 2: gather


def pieces(draw: random.Random, k: int, *shape: int) -> list[torch.Tensor]:
    """Draw k tensors whose first sizes differ."""
    return [numbers(draw, draw.randint(1, 4) + i % 2, *shape) for i in range(k)]


def gather_tensors(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the tensor into which tensors of different lengths are combined, and its device."""
    draw, cases = random.Random(seed + 4), []
    for k in (draw.randint(3, 4), 1):
        outputs = pieces(draw, k, 2)
        right, got = to_plain(torch.cat(outputs)), function(outputs, "cpu")
        cases.append(
            case(
                to_plain(got),
                right,
                {
                    "a list": to_plain(outputs),
                    "a list ": to_plain(tuple(outputs)),
                    "reversed": to_plain(torch.cat(outputs[::-1])),
                    "first": to_plain(outputs[0]),
                },
                expected=[sum(map(len, outputs)), 2],
                shown=list(getattr(got, "shape", [])) or None,
            )
        )
    outputs = pieces(draw, 2, draw.randint(2, 5))
    got, rows = function(outputs, "meta"), sum(map(len, outputs))
    moved = [got.device.type, list(got.shape)] if isinstance(got, torch.Tensor) else "no tensor"
    return [
        *cases,
        case(
            moved,
            ["meta", [rows, outputs[0].shape[1]]],
            {"not moved": ["cpu", [rows, outputs[0].shape[1]]]},
        ),
    ]


def gather_nested(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare what nested outputs are combined into, and the errors for what cannot be combined."""
    draw, cases = random.Random(seed + 5), []
    for k in (3, 2):
        a, b, c = pieces(draw, k, 1), pieces(draw, k), pieces(draw, k)
        outputs = [(a[i], {"b": b[i], "none": None, "c": c[i]}, [b[i], (c[i],)]) for i in range(k)]
        # the same keys, in another order
        outputs[-1] = (*outputs[-1][:1], dict(reversed(outputs[-1][1].items())), *outputs[-1][2:])
        mixed = join(
            [
                {key: tensor for key, tensor in output[1].items() if key != "none"}
                for output in outputs
            ],
            by_position=True,
        )
        got, right = function(outputs, "cpu"), join(outputs)
        wrong = {
            "by position": to_plain((right[0], {**mixed, "none": None}, right[2])),
            "a list": to_plain(outputs),
            "untouched": to_plain(outputs[0]),
        }
        cases.append(case(to_plain(got), to_plain(right), wrong))
    first, other = pieces(draw, 2, 2)
    for second in ({"a": other, "b": other}, {"b": other}):
        cases.append(
            case(
                _refusal(function, [{"a": first}, second]),
                "ValueError",
                {"keys lost": "no error"},
                kind="keys",
            )
        )
    cases.append(
        case(
            _refusal(function, [{"loss": 0.5}, {"loss": float(draw.randint(1, 9))}]),
            "TypeError",
            kind="number",
        )
    )
    return cases


def _refusal(function: Callable[..., Any], outputs: Any) -> str:
    try:
        function(outputs, "cpu")
    except NotImplementedError:
        raise
    except Exception as error:  # noqa: BLE001 - a learner's function may raise anything
        return type(error).__name__
    return "no error"


def gather_scalars(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the vector into which the replicas' scalars are combined."""
    draw, cases = random.Random(seed + 6), []
    for k in (draw.randint(3, 5), 2):
        outputs = list(numbers(draw, k) + torch.arange(k) / 8)
        got, right = function([{"loss": number} for number in outputs], "cpu"), torch.stack(outputs)
        wrong = {
            "mean": right.mean(),
            "sum": right.sum(),
            "first": right[0],
            "column": right[:, None],
        }
        cases.append(
            case(
                to_plain(got),
                to_plain({"loss": right}),
                [(name, to_plain({"loss": value})) for name, value in wrong.items()],
                k=k,
            )
        )
    return cases


def gather_gradient(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the gradients that reach the outputs from what they were combined into."""
    draw = random.Random(seed + 7)
    outputs = [(rows.requires_grad_(), rows.sum()) for rows in pieces(draw, 3, 2)]
    weights = [numbers(draw, *own.shape) for own, _ in outputs]
    rows, sums = function(outputs, "cpu")
    if rows.requires_grad or sums.requires_grad:
        ((rows * torch.cat(weights)).sum() + (sums * torch.arange(3)).sum()).backward()
    got = ["None" if own.grad is None else to_plain(own.grad) for own, _ in outputs]
    return [
        case(
            got,
            [to_plain(weight + i) for i, weight in enumerate(weights)],
            {
                "detached": ["None"] * 3,
                "scalars detached": [to_plain(weight) for weight in weights],
                "rows detached": [
                    to_plain(torch.full_like(weight, i)) for i, weight in enumerate(weights)
                ],
            },
        )
    ]
