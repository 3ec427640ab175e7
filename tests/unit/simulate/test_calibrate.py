"""Constants from rows: those that made them, and what is nearest where none fit."""

import numpy as np
import pytest

from manyhands.simulate.calibrate import calibrate
from manyhands.simulate.networks import layers, resnet
from manyhands.simulate.training_step import Machine, Way, step


def images_per_s(constants, ranks):
    machine = Machine(4, (1e-6, 1e11), (1e-5, constants["bytes_per_s"]))
    return (
        32
        * ranks
        / step(machine, layers(resnet(50), 32, constants["flops_per_s"]), Way(ranks)).seconds
    )


def test_two_rows_give_the_machine_that_made_them():
    true = {"flops_per_s": 7e12, "bytes_per_s": 1.1e9}
    rows = [(p, images_per_s(true, p)) for p in (1, 16)]
    constants = calibrate(images_per_s, rows, {"flops_per_s": 1e12, "bytes_per_s": 5e9})
    assert constants == pytest.approx(true, rel=1e-5)


def test_more_rows_than_constants_share_the_error_evenly():
    fitted = calibrate(lambda constants, x: constants["a"] * x, [(1, 2.0), (1, 8.0)], {"a": 1.0})
    assert fitted["a"] == pytest.approx(4)  # the geometric mean: as far from both, in parts


def test_a_constant_that_nothing_depends_on_stays_finite():
    fitted = calibrate(
        lambda constants, x: constants["a"], [(1, 3.0), (2, 3.0)], {"a": 1.0, "b": 5.0}
    )
    assert fitted["a"] == pytest.approx(3) and np.isfinite(fitted["b"])


@pytest.mark.parametrize(
    "rows, guess, message",
    [
        ([(1, 2.0)], {"a": 1, "b": 1}, "1 rows for 2 constants"),
        ([(1, -2.0)], {"a": 1}, "more than 0"),
        ([(1, 2.0)], {"a": 0}, "more than 0"),
    ],
)
def test_bad_input_says_what_was_wrong(rows, guess, message):
    with pytest.raises(ValueError, match=message):
        calibrate(lambda constants, x: constants["a"], rows, guess)
