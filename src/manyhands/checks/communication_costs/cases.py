"""Hidden measurements for unit 05's checks: links, messages and gradients, drawn from the seed.

The noise resembles real timings. Most times are within a few per cent, and some take many times as
long, because something else ran. Its median is the model's time, but its mean is not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.simulate import Link

KINDS = (  # lowest and highest latency in s, lowest and highest bytes per second
    ((2e-6, 6e-6), (8e8, 1.5e9)),  # two processes that share memory
    ((2e-5, 6e-5), (1e9, 4e9)),  # two processes and the loopback of the kernel
    ((2e-6, 6e-6), (3e11, 4.5e11)),  # NVLink of an H100
    ((3e-6, 9e-6), (3.5e10, 4.8e10)),  # InfiniBand, 400 Gbit/s
    ((5e-3, 2e-2), (1e7, 5e7)),  # two cities
)
# of sizes, for each kind, in units of alpha B
RANGES = ((2**-8, 2**16), (2**-7, 2**2), (2**-14, 2**3), (2**-7, 2**12), (2**-7, 2**8))
NOISE, LATE = 0.025, 0.15  # of one time; and how many of the times are disturbed


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random numbers of one purpose, which depend on the seed and its name."""
    return np.random.default_rng([seed % 2**32, *name.encode()])


def link(draw: np.random.Generator, kind: int) -> Link:
    """Draw a link of a kind, which is its place in KINDS."""
    from manyhands import simulate

    (low_s, high_s), (slow, fast) = KINDS[kind]
    return simulate.Link(
        float(np.exp(draw.uniform(np.log(low_s), np.log(high_s)))),
        float(np.exp(draw.uniform(np.log(slow), np.log(fast)))),
    )


def sizes(
    draw: np.random.Generator,
    true: Link,
    smallest: float = 2**-8,
    largest: float = 2**14,
    step: int = 4,
) -> list[int]:
    """Return sizes of messages, each `step` times the one before.

    They go from `smallest` to `largest` times the size at which latency and bandwidth cost the
    same.
    """
    some = half(true) * draw.uniform(0.7, 1.4)
    count = int(np.log2(largest / smallest) // np.log2(step)) + 1
    return [max(1, round(some * smallest * step**k)) for k in range(count)]


def times(
    draw: np.random.Generator, true: Link, n_bytes: Sequence[int], repeats: int
) -> list[list[float]]:
    """Return a list of times for each size.

    There are `repeats` of the smallest size, and fewer and fewer of the larger ones.
    """
    from manyhands import simulate

    return _measured(draw, [simulate.message_s(size, *true) for size in n_bytes], repeats, fewest=9)


def _measured(
    draw: np.random.Generator, right_s: Sequence[float], repeats: int, fewest: int
) -> list[list[float]]:
    """Return a list of measured times for each of the true times `right_s`."""
    measured = []
    for k, one_s in enumerate(right_s):
        count = max(fewest, repeats - 2 * k)
        noise = NOISE * draw.normal(size=count)
        late = (noise > 0) & (draw.random(count) < 2 * LATE)
        factor = np.exp(noise) * np.where(late, draw.uniform(2, 20, count), 1)
        measured.append((one_s * factor).tolist())
    return measured


class Measured(NamedTuple):
    """The times of a link with two protocols.

    `cut` is the number of sizes that the protocol `small` sends; `large` is the one to find.
    """

    large: Link
    small: Link
    cut: int
    n_bytes: list[int]
    times_s: list[list[float]]


def measurements(seed: int) -> list[Measured]:
    """Return one `Measured` for a link of each kind, over wide ranges and narrow ones.

    There are at least four sizes for each of the two protocols.
    """
    from manyhands import simulate

    draw = generator(seed, "fit")
    measured: list[Measured] = []
    for kind, (smallest, largest) in enumerate(RANGES):
        large = link(draw, kind)
        n_bytes = sizes(draw, large, smallest, largest, step=2)
        small = simulate.Link(
            large.latency_s / draw.uniform(3, 6), large.bytes_per_s / draw.uniform(2, 4)
        )
        cut = int(np.searchsorted(n_bytes, draw.uniform(0.15, 0.35) * half(large)))
        right_s = [
            simulate.message_s(size, *(small if k < cut else large))
            for k, size in enumerate(n_bytes)
        ]
        times_s = _measured(draw, right_s, 41, fewest=25)
        # the first time of each is disturbed, as it often is, and says nothing
        for one_s, measured_s in zip(right_s, times_s, strict=True):
            measured_s[0] = float(one_s * draw.uniform(2, 20))
        measured.append(Measured(large, small, cut, n_bytes, times_s))
    return measured


def many_measurements(seed: int, count: int) -> tuple[Link, list[int], list[list[list[float]]]]:
    """Return `count` measurements of one link, with its truth and its sizes.

    They show how often a band holds the truth.
    """
    draw = generator(seed, "interval")
    true = link(draw, int(draw.integers(len(KINDS))))
    n_bytes = sizes(draw, true, 2**-4, 2**8)
    return true, n_bytes, [times(draw, true, n_bytes, 31) for _ in range(count)]


def half(link: Link) -> float:
    """Return the size of a message that spends as long on its latency as on its bytes."""
    return link.latency_s * link.bytes_per_s


def worlds(seed: int, least: int = 1) -> list[tuple[int, int, Link]]:
    """Return [(p, n_bytes, link)] for one, two, three and many ranks.

    There are powers of two and numbers just above, and sizes on both sides of the crossover.
    """
    draw = generator(seed, "worlds")
    drawn: list[tuple[int, int, Link]] = []
    for number, p in enumerate(
        (
            1,
            2,
            3,
            4,
            2 ** int(draw.integers(3, 7)) + 1,
            2 ** int(draw.integers(3, 8)),
            int(draw.integers(900, 1100)),
        )
    ):
        own_link = link(draw, number % len(KINDS))
        drawn.append((p, int(half(own_link) * 10 ** draw.uniform(-1.5, 2.5)) + 1, own_link))
    return [world for world in drawn if world[0] >= least]


def chains(seed: int) -> list[tuple[int, int, int, Link]]:
    """Return [(p, n_bytes, pieces, link)]: the worlds with one piece, with few and with many."""
    draw = generator(seed, "chains")
    counts = (
        int(draw.integers(2, 9)),
        1,
        int(draw.integers(2, 9)),
        *(int(draw.integers(2, 60)) for _ in range(4)),
    )
    return [
        (p, n_bytes, pieces, own_link)
        for (p, n_bytes, own_link), pieces in zip(worlds(seed), counts, strict=True)
    ]


def sizes_for_ranks(seed: int) -> list[tuple[int, Link, int]]:
    """Return [(n_bytes, link, limit)] to ask about.

    There are three sizes for which the ring is slower on a power of two and not slower just above
    it, one for which the ring is right on 2 and 3 ranks only, and one for which it is right on any
    number.
    """
    from manyhands import simulate

    draw = generator(seed, "ranks")
    drawn: list[tuple[int, Link, int]] = []
    for power in (int(draw.integers(6, 9)), int(draw.integers(4, 6)), 2):
        own_link = link(draw, int(draw.integers(len(KINDS))))
        low, high = (simulate.crossover_bytes(p, *own_link) for p in (2**power + 1, 2**power))
        drawn.append(
            (
                int(low + draw.uniform(0.3, 0.7) * (high - low)) + 1,
                own_link,
                int(draw.integers(1500, 3000)),
            )
        )
    for part, kind in ((0.1, int(draw.integers(1, 4))), (1e5, int(draw.integers(len(KINDS))))):
        own_link = link(draw, kind)
        drawn.append((int(part * half(own_link)) + 1, own_link, int(draw.integers(700, 1500))))
    return drawn


class Backward(NamedTuple):
    """When each gradient is ready, and its size; the ranks and their network."""

    ready_s: list[float]
    n_bytes: list[int]
    p: int
    link: Link


def backwards(seed: int) -> list[Backward]:
    """Return four backward passes, for which no fixed number of buckets is always good.

    For two of them, neither a bucket for each tensor nor a single bucket is a good choice. One is
    of small tensors, for which few buckets are best, and one of large tensors, for which many are.
    """
    draw = generator(seed, "backwards")
    drawn: list[Backward] = []
    while len(drawn) < 2:
        case = _backward(draw, (24, 40), (0.03, 0.15), (1.2, 2.5), spread=1.0)
        if min(time_s(case, 0), time_s(case, sum(case.n_bytes))) > 1.2 * best_s(case):
            drawn.append(case)
    return [
        *drawn,
        _backward(draw, (24, 40), (0.0005, 0.002), (1.5, 3.0), spread=1.0),
        _backward(draw, (60, 80), (20, 50), (0.95, 1.05), spread=0.4),
    ]


def _backward(
    draw: np.random.Generator,
    counts: tuple[int, int],
    weights: tuple[float, float],
    computing: tuple[float, float],
    spread: float,
) -> Backward:
    """Draw a backward pass.

    `weights` are sizes of a tensor, in units of what costs as much as the latencies, and
    `computing` is the length of the pass, in units of one all-reduce of all tensors.
    """
    from manyhands import simulate

    count, p, own_link = (
        int(draw.integers(*counts)),
        int(draw.integers(4, 40)),
        link(draw, int(draw.integers(1, 4))),
    )
    n_bytes = (
        (
            4
            * np.maximum(
                1,
                np.exp(spread * draw.normal(size=count))
                * half(own_link)
                * p
                * draw.uniform(*weights),
            )
        )
        .astype(int)
        .tolist()
    )
    ready_s = (
        np.cumsum(draw.dirichlet(np.full(count, 3.0)))
        * simulate.ring_s(p, sum(n_bytes), *own_link)
        * draw.uniform(*computing)
    )
    return Backward(ready_s.tolist(), n_bytes, p, own_link)


def all_reduce_s(case: Backward, n_bytes: float) -> float:
    """Return the seconds of an all-reduce of so many bytes along a ring."""
    from manyhands import simulate

    return float(simulate.ring_s(case.p, n_bytes, *case.link))


def time_s(case: Backward, bucket_bytes: float) -> float:
    """Return when the last gradient of a backward pass has arrived, with buckets of this size."""
    from manyhands import simulate

    return simulate.finish_s(case.ready_s, case.n_bytes, bucket_bytes, partial(all_reduce_s, case))


def limits(case: Backward) -> list[int]:
    """Return sizes of buckets to ask about, with one tensor in each, with a few, and with all.

    With one size, two tensors fill a bucket exactly.
    """
    total = sum(case.n_bytes)
    return [
        0,
        int(1.5 * total / len(case.n_bytes)),
        sum(case.n_bytes[:2]),
        total // 5,
        total // 2,
        total,
        2 * total,
    ]


def best_s(case: Backward) -> float:
    """Return the shortest time of a hundred sizes of buckets.

    It is the shortest of all sizes to a few per cent.
    """
    total, count = sum(case.n_bytes), len(case.n_bytes)
    some = {*(total / k for k in range(1, count + 1)), *np.geomspace(min(case.n_bytes), total, 64)}
    return min(time_s(case, limit) for limit in some)
