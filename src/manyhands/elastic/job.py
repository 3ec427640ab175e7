"""A small training with every kind of state, whose ranks may be lost.

Rows come from one endless order: the images of the first epoch, shuffled, then those of the second,
and so on. It does not depend on the number of ranks. A step takes the next `world * PER_RANK` of
them.
"""

import random
from functools import lru_cache

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

IMAGES, PER_RANK, RANKS = 240, 8, 4


@lru_cache
def images() -> tuple[torch.Tensor, torch.Tensor]:
    """Digits: x [240, 64] in float64, y [240]."""
    from manyhands.data import digits

    x, y = digits()
    return torch.from_numpy(x[:IMAGES]).double(), torch.from_numpy(y[:IMAGES])


def endless(start: int, count: int, total: int = IMAGES, seed: int = 0) -> list[int]:
    """The rows from `start` to `start + count` of the endless order.

    Each epoch is a permutation of `total` rows that the seed and the epoch's number make.
    """
    places = range(start, start + count)
    orders = {
        epoch: np.random.default_rng([seed, epoch]).permutation(total)
        for epoch in {p // total for p in places}
    }
    return [int(orders[place // total][place % total]) for place in places]


class Job:
    """A network that learns the digits.

    What it remembers between two steps:

    * `model`, `optimizer` (momentum), `scheduler` (the rate falls every 12 steps);
    * `noise`, NumPy's generator of the noise on the images; torch's own generator draws the
      dropout, Python's `random` whether the images are moved by a pixel;
    * `seen`, how many images it has taken from the endless order.

    `world` is how many ranks share the work. The loss is the sum over the batch, divided by what
    four ranks take: with more ranks a step goes further, by the linear rule.
    """

    def __init__(self, seed: int, world: int = RANKS) -> None:
        torch.manual_seed(seed)
        random.seed(seed)
        self.noise = np.random.default_rng(seed)
        self.model = nn.Sequential(
            nn.Linear(64, 24), nn.Tanh(), nn.Dropout(0.2), nn.Linear(24, 10)
        ).double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.2, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 12, 0.6)
        self.seen, self.world = 0, world

    def train_step(self) -> float:
        """One step; returns the mean loss of its images."""
        x, y = images()
        rows = endless(self.seen, self.world * PER_RANK)
        batch = x[rows] + 0.1 * torch.from_numpy(self.noise.normal(size=(len(rows), 64)))
        if random.random() < 0.3:
            batch = batch.roll(1, dims=1)
        loss = cross_entropy(self.model(batch), y[rows], reduction="sum")
        self.optimizer.zero_grad()
        (loss / (RANKS * PER_RANK)).backward()
        self.optimizer.step()
        self.scheduler.step()
        self.seen += len(rows)
        return loss.item() / len(rows)


class RankLost(RuntimeError):  # noqa: N818 - learners catch it by this name
    """A rank was lost in the midst of a step.

    What the step has changed so far is neither the old state nor the new.
    """


class RanksJoined(RuntimeError):  # noqa: N818 - no error, and learners catch it
    """New ranks wait to be let in. It is raised before a step has begun: nothing is lost."""


def warm() -> None:
    """Load the digits, and what torch imports with its first optimizer.

    Forks that come later have both.
    """
    images()
    torch.optim.SGD([torch.zeros(1)], lr=1.0)
