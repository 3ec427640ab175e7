"""A single process with the batches of four ranks, as the judge distributes them.

It gives the weights that a mended training loop must reach.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from manyhands.checks.rank_tools import total

if TYPE_CHECKING:
    from collections.abc import Collection

    import torch

    from manyhands.hackathon.challenges.challenge import Challenge

RATE, MOMENTUM, LONGEST = 0.1, 0.9, 2.0  # as in the broken training loop
MISTAKES = ("sum", "add up", "clip first")


def start(challenge: Challenge, seed: bytes) -> torch.Tensor:
    """Return the initial weights, a vector."""
    from manyhands.hackathon.judge.referee import Referee

    return Referee(challenge, seed).task.weights


def one_process(challenge: Challenge, seed: bytes, mistakes: Collection[str] = ()) -> torch.Tensor:
    """Return the weights after all batches, a vector.

    `mistakes` are made as four ranks would make them.
    """
    import torch

    from manyhands.hackathon.judge.referee import Referee

    referee = Referee(challenge, seed)
    ranks = referee.accelerators
    weights = torch.nn.Parameter(referee.task.weights.clone())
    optimizer = torch.optim.SGD([weights], RATE, momentum=MOMENTUM)
    before = [torch.zeros_like(weights) for _ in ranks]
    for _ in range(challenge.most_batches):
        flat = weights.detach().numpy().tobytes()
        own = [
            torch.frombuffer(bytearray(rank.gradient(rank.take(), flat)[1]), dtype=torch.float32)
            for rank in ranks
        ]
        if "add up" in mistakes:
            own = [gradient + old for gradient, old in zip(own, before, strict=True)]
        if "clip first" in mistakes:
            own = [_clipped(gradient) for gradient in own]
        mean = total(own) / (1 if "sum" in mistakes else len(ranks))
        if "clip first" not in mistakes:
            mean = _clipped(mean)
        before = [mean] * len(ranks)  # the all-reduce has put it into every gradient
        weights.grad = mean.clone()
        optimizer.step()
    return weights.detach()


def alike(challenge: Challenge, seed: bytes) -> dict[tuple[str, ...], torch.Tensor]:
    """Return {mistakes: the weights that they give}, the fewest mistakes first. () is right."""
    made = sorted(product((False, True), repeat=len(MISTAKES)), key=sum)
    sets = [
        tuple(name for name, there in zip(MISTAKES, flags, strict=True) if there) for flags in made
    ]
    return {mistakes: one_process(challenge, seed, mistakes) for mistakes in sets}


def _clipped(gradient: torch.Tensor) -> torch.Tensor:
    """Clip as `torch.nn.utils.clip_grad_norm_` does."""
    return gradient * min(1.0, LONGEST / (gradient.norm().item() + 1e-6))
