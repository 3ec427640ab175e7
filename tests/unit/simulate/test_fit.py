"""Fits find the link that made the times, also among disturbed ones.

Bands hold what they promise; buckets are filled as DDP fills them.
"""

import numpy as np
import pytest

from manyhands.simulate import (
    Link,
    bootstrap,
    buckets,
    finish_s,
    fit,
    interval,
    message_s,
    resnet50_bytes,
)

SIZES = [4 * 4**k for k in range(14)]


def times(link, seed, repeats=21, disturbed=0.15):
    """Repeated times whose median is the model's.

    They have a noise of 2 %, and some take many times as long, so that the mean is far off.
    """
    draw, measured = np.random.default_rng(seed), []
    for n_bytes in SIZES:
        noise = 0.02 * draw.normal(size=repeats)
        late = (noise > 0) & (draw.random(repeats) < 2 * disturbed)
        measured.append(
            message_s(n_bytes, *link)
            * np.exp(noise)
            * np.where(late, draw.uniform(2, 20, repeats), 1)
        )
    return measured


@pytest.mark.parametrize("link", [Link(3e-5, 2e9), Link(5e-3, 1.2e7), Link(4e-6, 1.1e10)])
def test_the_link_is_found(link):
    assert fit(SIZES, [message_s(n, *link) for n in SIZES]) == pytest.approx(link)
    assert fit(SIZES, times(link, seed=1)) == pytest.approx(link, rel=0.03)


def test_without_the_weights_the_latency_is_noise():
    link, wrong = Link(3e-6, 1e9), []
    for seed in range(20):
        medians = [np.median(repeated) for repeated in times(link, seed)]
        wrong.append(abs(np.polyfit(SIZES, medians, 1)[1] / link.latency_s - 1))
    assert np.median(wrong) > 0.3


def test_what_cannot_be_fitted_is_refused():
    for sizes, seconds in (
        ([4, 4], [1, 1]),
        ([4, 8], [1, 0]),
        ([4, 8], [2, 1]),
        ([4], [1]),
        ([4, 8], [1]),
    ):
        with pytest.raises(ValueError):
            fit(sizes, seconds)


def test_a_band_holds_the_truth_about_as_often_as_it_says():
    link, inside = Link(3e-5, 2e9), 0
    for seed in range(40):
        low, high = interval(bootstrap(SIZES, times(link, seed), resamples=200, seed=seed))
        inside += int(low[0] <= link.latency_s <= high[0]) + int(
            low[1] <= link.bytes_per_s <= high[1]
        )
    assert 64 <= inside <= 80  # of 80; 72 are expected


def test_bootstrap_is_seeded_and_intervals_work_on_predictions():
    measured = times(Link(3e-5, 2e9), seed=0)
    again = bootstrap(SIZES, measured, resamples=50, seed=3)
    assert np.array_equal(
        again, bootstrap(SIZES, measured, resamples=50, seed=3)
    ) and again.shape == (50, 2)
    low, high = interval([message_s(np.array(SIZES), *link) for link in again])
    assert low.shape == (len(SIZES),) and np.all(low < high)


@pytest.mark.parametrize(
    "limit, groups",
    [
        (0, [[0], [1], [2], [3]]),
        (3, [[0, 1], [2], [3]]),
        (4, [[0, 1, 2], [3]]),
        (99, [[0, 1, 2, 3]]),
    ],
)
def test_a_bucket_is_full_when_it_holds_the_limit(limit, groups):
    assert buckets([1, 2, 5, 1], limit) == groups


def test_the_network_waits_for_gradients_and_gradients_for_the_network():
    def cost(n_bytes):
        return 1 + n_bytes

    assert finish_s([0, 1, 9], [2, 2, 2], 0, cost) == 12  # 0-3, 3-6, 9-12
    assert finish_s([0, 1, 2], [2, 2, 2], 0, cost) == 9  # 0-3, 3-6, 6-9
    assert finish_s([0, 1, 9], [2, 2, 2], 4, cost) == 12  # 1-6, 9-12
    assert finish_s([0, 1, 9], [2, 2, 2], 6, cost) == 16  # 9-16


def test_buckets_are_those_of_ddp():
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(0)
    for limit in (1, 400, 3000, 10**6):
        sizes = draw.integers(1, 300, 40)
        theirs, _ = torch.distributed._compute_bucket_assignment_by_size(
            [torch.empty(int(n)) for n in sizes], [limit]
        )
        assert sorted(theirs) == buckets((4 * sizes).tolist(), limit)


def test_resnet50_has_its_size():
    sizes = resnet50_bytes()
    assert len(sizes) == 161 and sum(sizes) == 4 * 25_557_032 and sizes[0] == 4000


def test_the_weights_are_one_over_the_time():
    medians = np.array([np.median(repeated) for repeated in times(Link(3e-5, 2e9), seed=5)])
    beta, latency_s = np.polyfit(SIZES, medians, 1, w=1 / medians)
    assert fit(SIZES, medians) == pytest.approx((latency_s, 1 / beta), rel=1e-6)
