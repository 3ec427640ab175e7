"""Late ranks: drawn as `survival.slowest` expects them."""

import numpy as np
import pytest

from manyhands.simulate.stragglers import slowness
from manyhands.simulate.survival import slowest
from manyhands.simulate.training_step import Layer, Machine, Way, step

MEASURED = [1.0, 1.1, 0.9, 1.0, 1.5]


@pytest.mark.parametrize("law", ["normal", "exponential", MEASURED])
def test_the_slowest_of_many_is_what_the_formula_says(law):
    draws = [slowness(Way(64), 0.05, law, seed).max() for seed in range(600)]
    assert np.mean(draws) == pytest.approx(
        slowest(64, 0.05, law), abs=5 * np.std(draws) / 600**0.5 + 1e-5
    )


def test_shape_mean_and_seed():
    factors = slowness(Way(50, 4, 8), 0.1)
    assert factors.shape == (4, 50, 8) and factors.mean() == pytest.approx(1, abs=0.02)
    assert np.array_equal(factors, slowness(Way(50, 4, 8), 0.1)) and not np.array_equal(
        factors, slowness(Way(50, 4, 8), 0.1, seed=1)
    )
    assert (slowness(Way(3), 0.0) == 1).all()


@pytest.mark.parametrize(
    "spread, law, message",
    [
        (-1, "normal", "spread is -1"),
        (0.1, "gamma", "law is 'gamma'"),
        (0, [], "measured times"),
        (0, [1, 0], "measured times"),
    ],
)
def test_bad_input_says_what_was_wrong(spread, law, message):
    with pytest.raises(ValueError, match=message):
        slowness(Way(2), spread, law)


def test_from_64_ranks_on_some_are_late_where_nothing_is_said():
    machine, layers = Machine(8, (0.0, 1e30), (0.0, 1e30)), [Layer(1.0, 0.1, 0.2)]
    for ranks, late in (
        (63, 0.0),
        (64, 0.01 * (sum(1 / k for k in range(1, 65)) - 1)),
        (1024, 0.0651),
    ):
        usual, alike = step(machine, layers, Way(ranks)), step(machine, layers, Way(ranks), 1)
        assert usual.seconds / alike.seconds - 1 == pytest.approx(late, abs=1e-3)
        assert usual == step(machine, layers, Way(ranks))  # the same each time
