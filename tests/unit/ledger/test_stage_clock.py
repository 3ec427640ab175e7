"""A stage that sleeps and notes.

It has the module's own numbers, the times that were asked for, and what backward still needs.
"""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from manyhands.ledger.stage_clock import StageClock

ROWS, WIDTH = 3, 5
ONE = ROWS * WIDTH * 8  # bytes of an activation


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()
    ).double()


def given(gradient):
    return torch.randn(ROWS, WIDTH, dtype=torch.float64).requires_grad_(gradient)


@pytest.mark.parametrize("inner", [True, False])  # a stage in the middle, the first stage
def test_outputs_and_gradients_are_those_of_the_module(module, inner):
    plain, clock, x = copy.deepcopy(module), StageClock(module, 0.01, 0.02), given(inner)
    other = x.detach().clone().requires_grad_(inner)
    y, right = clock(x), plain(other)
    y.square().sum().backward()
    right.square().sum().backward()
    assert torch.equal(y, right) and (not inner or torch.equal(x.grad, other.grad))
    assert all(
        torch.equal(p.grad, q.grad)
        for p, q in zip(module.parameters(), plain.parameters(), strict=True)
    )
    (kind, _, stage, start_s, stop_s), (back, _, _, back_s, end_s) = clock.spans(
        [("F", 0, 1), ("B", 0, 1)]
    )
    assert (kind, back, stage) == (
        "F",
        "B",
        1,
    ) and start_s + 0.01 <= stop_s <= back_s <= end_s - 0.02


def test_a_backward_in_two_halves(module):
    clock, x = StageClock(module, 0.0, 0.02), given(True)
    y = clock(x).sum()
    torch.autograd.grad(y, [x], retain_graph=True)
    assert [kind for kind, *_ in clock.log] == ["F", "I"] and clock.kept_bytes > 0
    torch.autograd.grad(y, [*clock.module.parameters(), clock.weight_end])
    spans = clock.spans([("F", 0, 2), ("I", 0, 2), ("W", 0, 2)])
    assert [span[0] for span in spans] == ["F", "I", "W"] and all(
        stop - start >= 0.01 for *_, start, stop in spans[1:]
    )


def test_the_first_stage_has_no_half_for_its_input(module):
    clock = StageClock(module, 0.0, 0.02)
    clock(given(False)).sum().backward()
    (_, *_), (kind, _, _, start_s, stop_s) = clock.spans([("F", 0, 0), ("I", 0, 0), ("W", 0, 0)])
    assert kind == "W" and stop_s - start_s >= 0.02


def test_what_backward_still_needs(module):
    clock = StageClock(module)
    outputs = [clock(given(True)) for _ in range(4)]
    # the input and two outputs of each
    assert clock.kept_bytes == clock.peak_kept_bytes == 4 * 3 * ONE
    outputs.pop().sum().backward()
    assert (clock.kept_bytes, clock.peak_kept_bytes) == (3 * 3 * ONE, 4 * 3 * ONE)
    assert sum(change for _, change in clock.memory) == clock.kept_bytes
    clock.reset()
    assert (
        clock.peak_kept_bytes == 3 * 3 * ONE
        and clock.log == []
        and [change for _, change in clock.memory] == [3 * 3 * ONE]
    )
    outputs.clear()
    assert sum(change for _, change in clock.memory) == clock.kept_bytes == 0
    clock.reset()
    assert clock.memory == []


def test_recomputation_keeps_the_input_only(module):
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            return checkpoint(self.module, x, use_reentrant=False)

    clock = StageClock(Again())
    y = clock(given(True))
    assert clock.kept_bytes == ONE
    y.sum().backward()
    assert clock.kept_bytes == 0
