"""manyhands.simulate.asynchrony: rates, barriers and backups.

They are held against roots, brute force and drawing.
"""

import random

import numpy as np
import pytest

from manyhands.simulate.asynchrony import Barrier, growth, nth_fastest_s, play, stable_rate


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 8, 40])
def test_the_largest_stable_rate_is_where_a_root_reaches_the_circle(delay):
    edge = stable_rate(delay)
    assert growth(delay, edge) == pytest.approx(1, abs=1e-9)
    assert growth(delay, 0.98 * edge) < 1 < growth(delay, 1.02 * edge)
    assert stable_rate(delay, curvature=4) == pytest.approx(edge / 4)


def test_known_values_of_the_largest_rate():
    assert (
        stable_rate(0) == 2
        and stable_rate(1) == pytest.approx(1)
        and stable_rate(2) == pytest.approx((5**0.5 - 1) / 2)
    )
    with pytest.raises(ValueError, match="0 or more"):
        stable_rate(-1)


def drawn(seed):
    chance = random.Random(seed)
    workers, bound = chance.randint(2, 4), chance.choice([0, 1, 2, 3, float("inf")])
    return (
        workers,
        bound,
        [
            [chance.choice([1, 1, 2, 7, 15]) for _ in range(chance.randint(3, 12))]
            for _ in range(workers)
        ],
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_bound_holds_what_it_promises_and_nobody_waits_for_ever(seed):
    workers, bound, seconds = drawn(seed)
    steps, left = play(seconds, Barrier(workers, bound))
    assert not left and len(steps) == sum(map(len, seconds))
    assert [step.staleness for step in steps] == [
        number - step.version for number, step in enumerate(steps)
    ]
    assert max(step.staleness for step in steps) <= (workers - 1) * (2 * bound + 1)
    last = {step.worker: number for number, step in enumerate(steps, 1)}
    # every worker pulls right after its push: the sum does not depend on who is slow
    if bound == float("inf"):
        assert sum(step.staleness for step in steps) == sum(last.values()) - len(steps)
    # the clocks when a step begins: pushes before it, of those who are still there
    for step in steps:
        done = [
            sum(earlier.worker == worker and earlier.stop_s <= step.start_s for earlier in steps)
            for worker in range(workers)
        ]
        there = [clock for worker, clock in enumerate(done) if clock < len(seconds[worker])]
        assert step.clock - min(there) <= bound


def test_lockstep_takes_as_long_as_the_slowest_of_each_round():
    steps, _ = play([[1, 5, 1], [3, 1, 2]], Barrier(2, 0))
    assert steps[-1].stop_s == 3 + 5 + 2


def test_the_dead_are_not_waited_for():
    steps, left = play([[1] * 4, [3] * 4], Barrier(2, 0), deaths=[(1, 4)])
    assert not left and [(step.worker, step.stop_s) for step in steps] == [
        (0, 1),
        (1, 3),
        (1, 4),
        (0, 4),
        (0, 5),
        (0, 6),
    ]
    assert steps[2].staleness is None


def test_a_barrier_that_forgets_who_waits_leaves_them():
    class Forgets(Barrier):
        def done(self, worker):
            return [released for released in super().done(worker) if released == worker]

    assert play([[1] * 4, [3] * 4], Forgets(2, 0))[1] != []


@pytest.mark.parametrize("n, b", [(1, 0), (3, 0), (3, 1), (5, 5), (1, 4)])
def test_the_nth_fastest_is_the_mean_over_all_draws(n, b):
    times = [1.0, 1.0, 2.0, 4.0, 9.0]
    draws = np.sort(np.random.default_rng(0).choice(times, (20_000, n + b)), axis=1)[:, n - 1]
    assert nth_fastest_s(n, n + b, times) == pytest.approx(
        draws.mean(), abs=5 * draws.std() / 20_000**0.5 + 1e-12
    )
    with pytest.raises(ValueError, match="n is 1"):
        nth_fastest_s(n + b + 1, n + b, times)


def test_the_pictures_show_the_numbers_they_are_given():
    from manyhands.plots import staleness as plots

    steps, _ = play([[0.002] * 3, [0.007] * 2], Barrier(2, float("inf")))
    lanes = plots.schedule(steps).text
    assert "worker 1" in lanes and "worker 2" not in lanes and lanes == plots.schedule(steps).text
    spirals = plots.spirals({"delay 0": [1, 0.8, 0.64], "delay 8": [1, 1, 0.9]}).text
    assert "delay 0" in spirals and "delay 8" in spirals
    assert "best: b = 1" in plots.against_b(3, [4.0, 2.0, 1.9], [10, 11, 14]).text
    assert plots.against_b_table([0.004, 0.002], [10, 11.5]).splitlines()[2].split() == [
        "1",
        "2.00",
        "11.5",
        "23.0",
    ]
