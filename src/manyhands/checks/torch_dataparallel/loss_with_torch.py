"""Experiments of unit 03's checks that need torch: the loss inside the replicas.

There are no ranks here (see `with_torch`).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy

from manyhands.checks.torch_dataparallel.diagnosis import case
from manyhands.checks.torch_dataparallel.with_torch import join, numbers, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from manyhands.checks.torch_dataparallel.answers import Case

NO_GRADIENT = ["no number that backward can follow"]


def loss_batches(draw: random.Random) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
    """Draw scores that require a gradient, their labels, and a number of replicas.

    The replicas share the rows unevenly.
    """
    for k in (4, 3):
        n, classes = k * draw.randint(3, 5) + 1, draw.randint(3, 6)
        yield numbers(draw, n, classes).requires_grad_(), numbers(draw, n).long() % classes, k


def _no_tensor(answer: Any) -> Case | None:
    """Return a case about what cannot be gathered of a replica's values, or None."""
    inside = (
        answer.values()
        if isinstance(answer, dict)
        else answer
        if isinstance(answer, (list, tuple))
        else [answer]
    )
    kind = next(
        (type(item).__name__ for item in inside if not isinstance(item, torch.Tensor)), None
    )
    return case(kind, "tensors", {"no tensors": kind}, what=kind) if kind else None


def _elsewhere(part: Callable[..., Any], draw: random.Random) -> None:
    """Ask for the parts of other batches.

    What a part leaves in a global variable is overwritten by them.
    """
    for rows in (2, 5, 3, 7):
        part(numbers(draw, rows, 3), numbers(draw, rows).long() % 3)


def loss_mean(part: Callable[..., Any], whole: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the loss of all rows, and its gradient, with those of a single process."""
    cases, other = [], random.Random(seed + 22)
    for scores, labels, k in loss_batches(random.Random(seed + 8)):
        pairs = list(zip(scores.chunk(k), labels.chunk(k), strict=True))
        if problem := _no_tensor(part(*pairs[0])):
            return [problem]
        mean, means = cross_entropy(scores, labels), [cross_entropy(*pair) for pair in pairs]
        parts = [part(*pair) for pair in pairs]
        _elsewhere(part, other)
        got = whole(join(parts))
        wrong = {
            "sum": cross_entropy(scores, labels, reduction="sum"),
            "mean of means": sum(means) / k,
            "sum of means": sum(means),
        }
        told_all = {
            name: _value_and_gradient(value, scores)
            for name, value in {"right": mean, **wrong}.items()
        } | {"no tensor": NO_GRADIENT}
        answer = _value_and_gradient(got, scores)
        cases.append(
            case(
                answer,
                told_all.pop("right"),
                told_all,
                expected=mean.item(),
                shown=answer[0],
                k=k,
                sizes=[len(own) for own, _ in pairs],
            )
        )
    return cases


def _value_and_gradient(loss: Any, scores: torch.Tensor) -> list[Any]:
    if not isinstance(loss, torch.Tensor) or loss.dim() or not loss.requires_grad:
        return NO_GRADIENT
    return [loss.item(), torch.autograd.grad(loss, scores, retain_graph=True)[0].tolist()]


def loss_bytes(part: Callable[..., Any], whole: Callable[..., Any], seed: int) -> list[Case]:
    """Count the numbers that a replica returns, and compare the direction of the gradient."""
    cases, other = [], random.Random(seed + 23)
    for scores, labels, k in loss_batches(random.Random(seed + 9)):
        for own, of in zip(scores.detach().chunk(k), labels.chunk(k), strict=True):
            own.requires_grad_()
            answer = part(own, of)
            if problem := _no_tensor(answer):
                return [problem]
            _elsewhere(part, other)
            small, loss, right = (
                sum(tensor.numel() for tensor in tensors(answer)),
                whole(join([answer])),
                _direction(cross_entropy(own, of), own),
            )
            few = 0 < small <= 2
            facts = (
                {"n": len(own)} if few else {"expected": "at most 2", "shown": small, "n": len(own)}
            )
            cases.append(
                case(
                    [few, _direction(loss, own)],
                    [True, right],
                    {"too much": [False, right], "no gradient": [True, "no gradient"]},
                    **facts,
                )
            )
    return cases


def _direction(loss: Any, scores: torch.Tensor) -> Any:
    if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
        return "no gradient"
    gradient = torch.autograd.grad(loss.sum(), scores, retain_graph=True)[0]
    return (gradient / gradient.norm()).tolist()
