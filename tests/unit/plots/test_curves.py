"""The picture of curves that must coincide."""

import numpy as np

from manyhands.plots.curves import coinciding, gap


def test_the_same_numbers_give_the_same_picture():
    serial = np.linspace(2, 0, 20)
    pictures = [
        coinciding(("one process", serial), {"by hand": serial, "links": serial + 1e-15}, 1e-6).text
        for _ in range(2)
    ]
    assert pictures[0] == pictures[1]
    assert all(
        word in pictures[0] for word in ("one process", "by hand", "links", "tolerance 1e-06")
    )


def test_curves_without_any_difference_can_be_drawn():
    assert "<svg" in coinciding(("a", [1.0, 0.5]), {"b": [1.0, 0.5]}, 1e-6).text


def test_gap_is_the_largest_difference():
    assert gap([1, 2, 3], [1, 2.5, 3.25]) == 0.5


def test_a_curve_that_drifts_away_stays_in_the_picture():
    serial = np.linspace(2, 0, 20)
    text = coinciding(
        ("one process", serial), {"the same": serial, "another": serial + 0.1}, 1e-12
    ).text
    assert (
        "1e-01" in text
        and "1e-01" not in coinciding(("one process", serial), {"the same": serial}, 1e-12).text
    )
