"""The data of the challenges, drawn by a seed.

They are made, not collected: an entry that brought along a known data set, or weights trained on
it, would have the test's answers. What a seed draws is drawn from streams that have nothing to do
with each other: who finds out how the initial weights were drawn knows nothing of the data, and who
has the training data nothing of the test's.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from manyhands.hackathon.challenges.model import network_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


CLASSES, DIMENSIONS = 10, 32
SYMBOLS, PLACES, BACK = 16, 16, 2


class Chains(NamedTuple):
    """Sequences of symbols, [samples, PLACES + 1]."""

    train: torch.Tensor
    test: torch.Tensor


class Task(NamedTuple):
    """Samples (x, y) of each rank and of the test, and the initial weights."""

    shards: list[tuple[torch.Tensor, torch.Tensor]]
    test: tuple[torch.Tensor, torch.Tensor]
    weights: torch.Tensor


def stream(seed: bytes, what: str) -> np.random.Generator:
    """A generator for one purpose. `seed` is bytes."""
    return np.random.default_rng(
        int.from_bytes(hashlib.sha256(what.encode() + b"\0" + seed).digest())
    )


def clouds(
    seed: bytes,
    ranks: int,
    layers: Sequence[int],
    own: float = 0.5,
    centres: int = 6,
    noise: float = 0.55,
    train: int = 6000,
    test: int = 4000,
) -> Task:
    """Ten classes, each of some clouds of points.

    A rank sees more of some classes than of others: the part `own` of its samples is of classes
    that are mostly its own, as where data lie where they were collected.
    """
    places = stream(seed, "centres").normal(size=(CLASSES, centres, DIMENSIONS))

    def samples(draw: np.random.Generator, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        x = (
            places[y, draw.integers(centres, size=len(y))]
            + noise * draw.normal(size=(len(y), DIMENSIONS)) * 2
        )
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)

    shards = []
    for rank in range(ranks):
        draw, count = stream(seed, f"shard {rank}"), train // ranks
        everything = draw.integers(CLASSES, size=count)
        mine = (rank * CLASSES // ranks + draw.integers(CLASSES // ranks + 1, size=count)) % CLASSES
        shards.append(samples(draw, np.where(draw.random(count) < own, mine, everything)))
    draw = stream(seed, "test")
    return Task(shards, samples(draw, draw.integers(CLASSES, size=test)), _start(seed, layers))


def chains(seed: bytes, train: int, sure: float = 0.85, test: int = 1000) -> Chains:
    """Sequences of symbols [samples, PLACES + 1] that can be guessed only in part.

    With the probability `sure`, a symbol is what a table says of the symbol `BACK` places before,
    otherwise any symbol. So no guess is right more often than `sure` + (1 - sure) / SYMBOLS of the
    time.
    """
    table = stream(seed, "table").permutation(SYMBOLS)

    def samples(what: str, count: int) -> torch.Tensor:
        draw = stream(seed, what)
        symbols = draw.integers(SYMBOLS, size=(count, PLACES + 1))
        for place in range(BACK, PLACES + 1):
            as_table = draw.random(count) < sure
            symbols[as_table, place] = table[symbols[as_table, place - BACK]]
        return torch.from_numpy(symbols)

    return Chains(samples("train", train), samples("test", test))


class Pace:
    """How long a gradient takes on a rank.

    In each stretch of `slow_s` seconds one rank takes `slow_times` as long as the others, and what
    begins in the stretch is slow until it ends. Each rank has its turn once in a round of as many
    stretches as there are ranks, in an order that the seed draws anew for each round. Therefore
    seeds differ little.
    """

    def __init__(
        self, seed: bytes, gradient_s: float, ranks: int, slow_times: float, slow_s: float
    ) -> None:
        self.usual_s, self.ranks, self.slow_times, self.slow_s = (
            gradient_s,
            ranks,
            slow_times,
            slow_s,
        )
        self._draw = stream(seed, "lame")
        self._slow: list[int] = []

    def gradient_s(self, rank: int, at_s: float) -> float:
        """Return the seconds that a gradient takes a rank at this time of its clock."""
        if self.slow_times == 1:
            return self.usual_s
        stretch = int(at_s / self.slow_s)
        while len(self._slow) <= stretch:
            self._slow += self._draw.permutation(self.ranks).tolist()
        return self.usual_s * (self.slow_times if self._slow[stretch] == rank else 1)


def _start(seed: bytes, layers: Iterable[int]) -> torch.Tensor:
    """The initial weights, as `nn.Linear` draws them."""
    draw, network = stream(seed, "weights"), network_of(layers)
    return torch.cat(
        [
            torch.from_numpy(draw.uniform(-1, 1, parameter.numel()).astype(np.float32))
            / layer.in_features**0.5
            for layer in network
            if isinstance(layer, torch.nn.Linear)
            for parameter in (layer.weight, layer.bias)
        ]
    )
