"""How often to save, and what the slowest costs.

Both are held against jobs played with failures, and against draws.
"""

import math

import numpy as np
import pytest

from manyhands.simulate.survival import daly_s, job_s, slowest, young_s


def played_s(draw, pieces, every_s, checkpoint_s, restart_s, mtbf_s):
    """One job, with failures at random moments: also while it saves and while it starts again."""
    now_s, fails_s, done = 0.0, draw.exponential(mtbf_s), 0
    needs_s = every_s + checkpoint_s
    while done < pieces:
        if now_s + needs_s <= fails_s:
            now_s, done, needs_s = now_s + needs_s, done + 1, every_s + checkpoint_s
        else:
            now_s, needs_s = fails_s, restart_s + every_s + checkpoint_s
            fails_s = now_s + draw.exponential(mtbf_s)
    return now_s


@pytest.mark.parametrize(
    "every_s, checkpoint_s, restart_s, mtbf_s",
    [(60, 5, 20, 300), (10, 1, 2, 1000), (50, 30, 0, 40)],
)
def test_a_job_with_failures_takes_as_long_as_played(every_s, checkpoint_s, restart_s, mtbf_s):
    draw = np.random.default_rng(0)
    times = [played_s(draw, 20, every_s, checkpoint_s, restart_s, mtbf_s) for _ in range(4000)]
    want = job_s(20 * every_s, every_s, checkpoint_s, restart_s, mtbf_s)
    assert abs(np.mean(times) - want) < 4 * np.std(times) / math.sqrt(len(times))


@pytest.mark.parametrize("checkpoint_s, mtbf_s", [(1, 1000), (30, 3600), (60, 600)])
def test_dalys_interval_is_the_best(checkpoint_s, mtbf_s):
    every = np.geomspace(checkpoint_s / 3, 10 * mtbf_s, 4000)
    best = min(job_s(1e6, every_s, checkpoint_s, 0, mtbf_s) for every_s in every)
    assert job_s(1e6, daly_s(checkpoint_s, mtbf_s), checkpoint_s, 0, mtbf_s) == pytest.approx(
        best, rel=1e-4
    )
    assert job_s(1e6, young_s(checkpoint_s, mtbf_s), checkpoint_s, 0, mtbf_s) == pytest.approx(
        best, rel=0.01
    )


def test_young_by_hand_and_dalys_limit():
    assert young_s(2, 100) == 20
    assert daly_s(1e-6, 100) == pytest.approx(young_s(1e-6, 100), rel=1e-3)
    assert daly_s(200, 100) == daly_s(1000, 100) == 100


def test_without_failures_only_the_checkpoints_are_added():
    assert job_s(100, 10, 1, 5, math.inf) == 110
    assert job_s(100, 10, 1, 5, 1e12) == pytest.approx(110)


@pytest.mark.parametrize("p", [1, 2, 10, 1000])
@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_the_slowest_as_drawn(p, law):
    draw = np.random.default_rng(1)
    times = (
        draw.normal(1, 0.1, (5000, p))
        if law == "normal"
        else 0.9 + draw.exponential(0.1, (5000, p))
    )
    largest = times.max(1)
    assert abs(slowest(p, 0.1, law) - largest.mean()) < 5 * largest.std() / math.sqrt(5000)


def test_the_slowest_of_known_numbers():
    assert slowest(1, 0.3) == pytest.approx(1) and slowest(1, 0.3, "exponential") == pytest.approx(
        1
    )
    # of two standard normal numbers
    assert slowest(2, 1.0) == pytest.approx(1 + 1 / math.sqrt(math.pi), abs=1e-6)
    assert slowest(3, 1.0, "exponential") == pytest.approx(1 / 1 + 1 / 2 + 1 / 3)
    assert slowest(2, None, [1.0, 3.0]) == pytest.approx((0.25 * 1 + 0.75 * 3) / 2)
    assert slowest(1, None, [1.0, 3.0]) == pytest.approx(1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: young_s(0, 1), "checkpoint_s is 0"),
        (lambda: daly_s(1, -1), "mtbf_s is -1"),
        (lambda: job_s(1, 0, 1, 1, 1), "every_s is 0"),
        (lambda: job_s(1, 1, -1, 1, 1), "checkpoint_s -1"),
        (lambda: slowest(0, 0.1), "p = 0"),
        (lambda: slowest(2, 0.1, "uniform"), "law is 'uniform'"),
        (lambda: slowest(2, 0.1, []), "one at least"),
    ],
)
def test_bad_input_says_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
