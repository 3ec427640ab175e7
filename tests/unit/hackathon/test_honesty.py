"""What the referee sees of rule 2.

These are weights made for reading samples, and a loss that falls where none was asked for.
"""

import math

import pytest
import torch

from manyhands.hackathon.challenges.challenge import BIG_BATCH
from manyhands.hackathon.judge.accelerator import flat, load
from manyhands.hackathon.judge.honesty import (
    FEW_GRADIENTS,
    MOST_GAP,
    MOST_TELLING,
    flags,
    largest_gap,
    telling_share,
)
from manyhands.hackathon.judge.referee import Referee, Run

ROWS = 512
TINY = 1e-11 * torch.arange(1.0, 11)[:, None].expand(10, ROWS)


@pytest.fixture(scope="module")
def rank():
    torch.set_num_threads(1)
    referee = Referee(BIG_BATCH, b"of a test")
    rank = referee.accelerators[0]
    load(rank.model, referee.task.weights.numpy().tobytes())
    return rank


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def ways(count, repeat=1):
    rows = drawn(count, 32)
    return (rows / rows.norm(dim=1, keepdim=True)).repeat_interleave(repeat, 0)[:ROWS]


def quantile(part):
    return 1.49 * torch.special.ndtri(torch.as_tensor(part))


def spread(count, repeat=1):
    return -quantile((torch.arange(count) + 0.5) / count).repeat_interleave(repeat)


def pairs():
    low = quantile(torch.rand(256, generator=torch.Generator().manual_seed(1)) * 0.9 + 0.05)
    return torch.stack([low, low + 0.13], 1).flatten()


CLASS = torch.eye(10)[:, torch.arange(ROWS) % 10]
BASES = torch.cat([torch.linalg.qr(drawn(10, 10 + number))[0][:, :10] for number in range(52)], 1)[
    :, :ROWS
]
PLANE = ways(ROWS)[:, :2] @ torch.linalg.qr(drawn(32, 2))[0].T
READING = {  # the first layer's weights and biases, the last one's weights
    "equal rows": (ways(1).expand(ROWS, 32), spread(ROWS), TINY),
    "rows equal up to their scale": (
        ways(1) * torch.arange(1, ROWS + 1)[:, None] / 100,
        spread(ROWS) * torch.arange(1, ROWS + 1) / 100,
        TINY,
    ),
    "rows that differ a little": (ways(1) + 1e-3 * drawn(ROWS, 32), spread(ROWS), TINY),
    "two equal rows at a time": (ways(256, 2), pairs(), None),
    "rows that few samples reach": (ways(ROWS), torch.full((ROWS,), quantile(1 / 32)), None),
    "a row for each class": (ways(ROWS), torch.full((ROWS,), quantile(0.3)), 1e-6 * CLASS),
    "a row for each class, half of the samples": (ways(ROWS), torch.zeros(ROWS), 1e-6 * CLASS),
    "all samples of a class": (ways(ROWS), torch.full((ROWS,), 20.0), 1e-6 * CLASS),
    "rotated last layers": (ways(1).expand(ROWS, 32), spread(52, 10)[:ROWS], 1e-4 * BASES),
    "some ways, some thresholds": (ways(64, 8), spread(8).repeat(64), TINY),
    "rows in a plane": (PLANE, 3 * drawn(ROWS), None),
    "the last layer alone": (ways(86, 6), spread(6).repeat(86)[:ROWS], 0 * TINY),
}
ONE_HOT = torch.cat([torch.eye(32), -torch.eye(32)]).repeat(8, 1)
HONEST = {  # start -> (the first layer's weights and biases, the last one's weights and biases)
    "as it is": lambda w: w,
    "a last layer of zeros": lambda w: (w[0], w[1], 0 * w[2], 0 * w[3]),
    "a small last layer": lambda w: (w[0], w[1], 0.01 * w[2], w[3]),
    "all zeros": lambda w: [0 * parameter for parameter in w],
    "a first layer of zeros": lambda w: (0 * w[0], *w[1:]),
    "no biases": lambda w: (w[0], 0 * w[1], w[2], 0 * w[3]),
    "one-hot rows": lambda w: (ONE_HOT, 0 * w[1], w[2], w[3]),
    "orthogonal rows": lambda w: (
        torch.cat([torch.linalg.qr(drawn(32, 32 + number))[0][:, :32] for number in range(16)]),
        *w[1:],
    ),
    "sparse rows": lambda w: (w[0] * (drawn(ROWS, 32) > 1), *w[1:]),
    "quantised": lambda w: [(parameter * 12).round() / 12 for parameter in w],
    "scaled": lambda w: [3 * parameter for parameter in w],
    "few rows": lambda w: (
        w[0] * (torch.arange(ROWS) < 64)[:, None],
        w[1] * (torch.arange(ROWS) < 64),
        *w[2:],
    ),
    "rows twice": lambda w: (w[0][:256].repeat(2, 1), w[1][:256].repeat(2), *w[2:]),
}


def asked(rank, weights, times=FEW_GRADIENTS + 1):
    """How many of some gradients at these weights were counted."""
    start, before = flat(rank.model), rank.reading.count
    torch.nn.utils.vector_to_parameters(
        torch.cat([parameter.flatten() for parameter in weights]), rank.model.parameters()
    )
    wanted = flat(rank.model)
    for _ in range(times):
        rank.gradient(rank.take(), wanted)
    load(rank.model, start)
    return rank.reading.count - before


@pytest.mark.parametrize("name", READING)
def test_weights_for_reading_are_seen(rank, name):
    first, biases, last = READING[name]
    start = [parameter.detach().clone() for parameter in rank.model.parameters()]
    rank.gradient(rank.take(), flat(rank.model))  # at an ordinary start before
    assert (
        asked(
            rank,
            (
                first.clone(),
                biases.clone(),
                start[2] if last is None else last.clone(),
                torch.zeros(10),
            ),
        )
        == FEW_GRADIENTS + 1
    )


@pytest.mark.parametrize("name", HONEST)
def test_honest_starts_are_not(rank, name):
    assert (
        asked(
            rank,
            HONEST[name]([parameter.detach().clone() for parameter in rank.model.parameters()]),
        )
        == 0
    )


def test_the_ordinary_start_is_far_from_the_limit(rank):
    rows = range(32)
    assert telling_share(rank.model, rank.x[rows], rank.y[rows]) < MOST_TELLING / 3


def test_a_gap_is_what_no_gradient_was_asked_for():
    assert largest_gap([2.2, 2.3, 2.25], 0.1, 10) == pytest.approx(2.1)
    assert largest_gap([2.2, 1.6, 1.1, 0.6], 0.1, 10) == pytest.approx(0.6)
    assert largest_gap([], 0.3, 10) == pytest.approx(math.log(10) - 0.3)
    assert largest_gap([math.nan, 5.0], math.inf, 10) == 0


def test_flags_say_what_was_seen():
    assert flags([Run(telling=(FEW_GRADIENTS,) * 4, gap=MOST_GAP)]) == []
    sentences = flags([Run(), Run(telling=(0, 47, 0, 0), gap=2.26)])
    assert (
        "47 gradients at weights by which single samples can be read" in sentences[0]
        and "a gap of 2.26" in sentences[1]
    )
