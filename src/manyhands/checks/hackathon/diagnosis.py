"""How the checks of unit 20 judge. Every `problem` is None or the details of a FAIL line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.hackathon.messages import MISTAKES
from manyhands.checks.in_kernel import likely

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import torch

    from manyhands.checks.hackathon import Trained
    from manyhands.checks.hackathon.cases import Case
    from manyhands.checks.report import Problem


def near(got: Any, expected: Any) -> bool:
    """Return whether numbers differ by no more than rounding."""
    return bool(np.allclose(got, expected, rtol=1e-6, atol=0))


def say(name: str, **facts: Any) -> Problem:
    """Return the details of a FAIL line, whose text names the facts."""
    return {"mistake": MISTAKES[name].format(**facts)}


def price_problems(
    asked: Sequence[Case], answers: Sequence[float], other: str
) -> Iterator[Problem | None]:
    """Return the problem of each answer, or None.

    A mistake that explains half of the wrong answers or more is named, otherwise `other`.
    """
    names = likely(
        [(case.right, case.wrong, got) for case, got in zip(asked, answers, strict=True)], same=near
    )
    for case, got in zip(asked, answers, strict=True):
        if near(got, case.right):
            yield None
            continue
        name = next((name for name in names if near(got, case.wrong[name])), other)
        yield {"expected": f"{case.right:.6g} s ({case.question})", "got": got, **say(name)}


def weights_problem(
    got: torch.Tensor,
    right: torch.Tensor,
    looks: Callable[[], Mapping[tuple[str, ...], torch.Tensor]],
    begun: torch.Tensor,
) -> Problem | None:
    """Judge the weights that the ranks ended with.

    `looks()`: {mistakes: weights}; `begun`: the initial weights.
    """
    way = (right - begun).norm().item()
    if (got - right).norm().item() < 1e-3 * way:
        return None
    for names, weights in looks().items():
        if names and (got - weights).norm().item() < 1e-3 * (weights - begun).norm().item():
            return say("as if", what=", and ".join(MISTAKES[name] for name in names))
    return say("other", apart=(got - right).norm().item() / way)


def batches_problem(gradients: Sequence[int], wanted: int) -> Problem | None:
    """Judge whether every rank has taken a gradient of each of its batches."""
    wrong = next((count for count in gradients if count != wanted), None)
    return None if wrong is None else say("batches", wanted=wanted, got=wrong)


def lean_problem(one: Trained) -> Problem | None:
    """Judge the messages and bytes of a rank.

    They may be those that one all-reduce of one tensor in each step needs, and some at the
    beginning.
    """
    if max(one.messages) > one.most_messages:
        return say("four tensors", got=max(one.messages), steps=one.steps)
    if max(one.messages) < 3 * one.steps:
        return say("own")
    return (
        say("more bytes", got=max(one.sent_bytes), steps=one.steps, most=one.most_bytes)
        if max(one.sent_bytes) > one.most_bytes
        else None
    )


def dense_problem(dense: np.ndarray, before: np.ndarray, count: int) -> Problem | None:
    """Judge what unpack returned for `before`.

    The `count` largest of its numbers should have been sent.
    """
    places = np.argsort(-np.abs(before))[:count]
    wanted = np.zeros_like(before)
    wanted[places] = before[places]
    if np.allclose(dense, wanted, rtol=1e-2, atol=0):
        return None
    signed = np.argsort(-before)[:count]
    sent = np.flatnonzero(dense)
    if set(sent) == set(signed):
        return say("signed")
    if len(sent) != count:
        return say("too many", got=len(sent), count=count)
    negative = np.zeros_like(before)
    negative[places.astype(np.uint16).astype(np.int16).astype(int)] = before[places]
    if len(before) > 2**15 and np.allclose(dense, negative, rtol=1e-2, atol=0):
        return say("wrapped")
    return say("zero")


def kept_problem(left: np.ndarray, before: np.ndarray, dense: np.ndarray) -> Problem | None:
    """Judge that nothing is lost.

    What is left and what arrives must add up to `before`, including what rounding has taken.
    """
    if np.allclose(left + dense, before, rtol=1e-6, atol=0):
        return None
    if np.allclose(left + dense, before, rtol=1e-2, atol=0):
        return say("rounding lost")
    sent = dense != 0
    if np.allclose(left[sent], before[sent], rtol=1e-2, atol=0):
        return say("still there")
    return (
        say("forgotten")
        if not np.allclose(left[~sent], before[~sent], rtol=1e-2, atol=0)
        else say("zero")
    )


def rung_problem(score_s: float, rung_s: float, baseline_s: float) -> Problem | None:
    """Judge whether an entry's score reaches a rung."""
    return None if score_s <= rung_s else say("slow", got=score_s, rung=rung_s, baseline=baseline_s)
