"""Steps in which each rank sends a few numbers of its gradient.

The learner's step runs on ranks, and a single process computes what it should do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from manyhands.checks.hackathon.messages import MISTAKES
from manyhands.checks.in_kernel import call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.report import Problem

Kept = list[tuple[list[float], list[float]]]  # weights and what is kept, after each step
RANKS, STEPS, SIZE, RATE = 3, 3, 60, 0.5
ATOL = 1e-5
LOOKS = (
    "sparse once",
    "sparse senders",
    "sparse sum",
    "sparse same places",
    "sparse whole",
    "sparse signed",
    "sparse still there",
    "sparse forgotten",
    "sparse float16",
    "sparse bfloat16",
    "sparse root",
)


class SparseCase(TypedDict):
    """Weights, gradients of each step and rank, and how many numbers are sent."""

    weights: np.ndarray
    gradients: np.ndarray
    count: int


def draw_case(draw: np.random.Generator, count: int) -> SparseCase:
    """Draw {weights, gradients of each step and rank, count}.

    The ranks agree on some of the largest numbers, and differ in others.
    """
    common = draw.normal(size=(STEPS, 1, SIZE)) * (draw.uniform(size=SIZE) < 0.3) * 4
    return {
        "weights": draw.normal(size=SIZE).astype(np.float32),
        "gradients": (draw.normal(size=(STEPS, RANKS, SIZE)) + common).astype(np.float32),
        "count": count,
    }


def train_on_rank(function: Callable[..., Any], case: SparseCase) -> Kept:
    """Return, on a rank, the weights and what is kept after each step.

    An exception of the learner's function ends the rank, because the others would otherwise wait
    for it.
    """
    import torch
    import torch.distributed as dist

    weights, kept, steps = torch.from_numpy(case["weights"].copy()), torch.zeros(SIZE), []
    for gradients in case["gradients"]:
        _, error = call(
            function,
            weights,
            torch.from_numpy(gradients[dist.get_rank()].copy()),
            kept,
            case["count"],
            RATE,
        )
        if error:
            raise RuntimeError(error)
        steps.append((weights.tolist(), kept.tolist()))
    return steps


def train_alone(
    case: SparseCase, mistake: str | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the weights after each step, and what each rank keeps.

    They are computed in a single process.
    """
    weights, kept, steps = case["weights"].astype(float), np.zeros((RANKS, SIZE)), []
    for gradients in case["gradients"]:
        kept += gradients
        ordered = -kept if mistake == "sparse signed" else -np.abs(kept)
        places = [np.argsort(row)[: case["count"]] for row in ordered]
        if mistake == "sparse same places":
            places = [places[0]] * RANKS
        sent = np.zeros((RANKS, SIZE))
        for rank, at in enumerate(places):
            sent[rank, at] = _rounded(kept[rank, at], mistake)
            kept[rank, at] = kept[rank, at] if mistake == "sparse still there" else 0
        senders = (sent != 0).sum(0)
        total = sent.sum(0)
        if mistake == "sparse whole":
            total, kept = total + kept.sum(0), np.zeros_like(kept)
        # if a place was sent several times, only the last value counts
        if mistake == "sparse once":
            total = np.zeros(SIZE)
            for message in sent:
                total[message != 0] = message[message != 0]
        weights = weights - RATE * total / (
            np.maximum(senders, 1)
            if mistake == "sparse senders"
            else 1
            if mistake == "sparse sum"
            else RANKS**0.5
            if mistake == "sparse root"
            else RANKS
        )
        kept = np.zeros_like(kept) if mistake == "sparse forgotten" else kept
        steps.append((weights.copy(), kept.copy()))
    return steps


def _rounded(values: np.ndarray, mistake: str | None) -> np.ndarray:
    if mistake == "sparse float16":
        return values.astype(np.float16)
    if mistake == "sparse bfloat16":
        import torch

        return torch.from_numpy(values).bfloat16().double().numpy()
    return values


def weights_problem(ranks: Sequence[Kept], case: SparseCase) -> Problem | None:
    """Judge the weights. `ranks`: what each rank has returned (see `stepped`)."""
    right = train_alone(case)
    for step, (wanted, _) in enumerate(right):
        mine = [np.array(rank[step][0]) for rank in ranks]
        if any(weights.shape != wanted.shape or not np.isfinite(weights).all() for weights in mine):
            return _say("sparse no tensor")
        if all(np.abs(weights - wanted).max() <= ATOL for weights in mine):
            continue
        if np.abs(mine[0] - mine[-1]).max() > ATOL:
            return _say("sparse own")
        if np.abs(mine[0] - case["weights"]).max() == 0:
            return _say("sparse not in place")
        name = next(
            (
                name
                for name in LOOKS
                if np.abs(mine[0] - train_alone(case, name)[step][0]).max() <= ATOL
            ),
            "sparse other",
        )
        place = int(np.abs(mine[0] - wanted).argmax())
        return {
            "expected": f"weight {place}: {wanted[place]:.7g}",
            "got": f"{mine[0][place]:.7g}",
            **_say(name),
        }
    return None


def kept_problem(ranks: Sequence[Kept], case: SparseCase) -> Problem | None:
    """Judge what the ranks keep after each step."""
    for step, (_, kept) in enumerate(train_alone(case)):
        for rank, steps in enumerate(ranks):
            if np.shape(steps[step][1]) != (SIZE,):
                return _say("sparse kept")
            if np.abs(np.array(steps[step][1]) - kept[rank]).max() > ATOL:
                return _say(
                    next(
                        (
                            name
                            for name in LOOKS
                            if _alike(steps[step], train_alone(case, name)[step], rank)
                        ),
                        "sparse kept",
                    )
                )
    return None


def _alike(
    found: tuple[list[float], list[float]], right_step: tuple[np.ndarray, np.ndarray], rank: int
) -> bool:
    weights, kept = right_step
    return (
        max(
            np.abs(np.array(found[0]) - weights).max(),
            np.abs(np.array(found[1]) - kept[rank]).max(),
        )
        <= ATOL
    )


def _say(name: str) -> Problem:
    return {"mistake": MISTAKES[name]}
