"""Latency and bandwidth from measured times, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manyhands.simulate.checked_input import Array, check_whole


class Link(NamedTuple):
    """A link's latency (alpha) and bandwidth (1/beta)."""

    latency_s: float  # alpha
    bytes_per_s: float  # 1/beta


def fit(
    n_bytes: Sequence[float] | Array,
    times_s: Sequence[float | Sequence[float]] | Sequence[Array] | Array,
) -> Link:
    """The `Link` whose messages take the measured times.

    n_bytes : the sizes, at least two different ones. times_s : for each size its time, or a list of repeated
        measurements, of which the median
    counts: a few that were disturbed do not move it. Least squares of the *relative* errors, sum ((alpha + n beta - t)
    / t)^2: a tenth of a small message's time is worth as much as a tenth of a large one's. Without the division the
    largest messages decide alone, and alpha is their noise. ValueError where no line with a positive bandwidth fits.
    """
    if any(np.size(repeated) == 0 for repeated in times_s):
        raise ValueError("times_s has a size without times: each size needs at least one")
    sizes, times = (
        np.asarray(n_bytes, float),
        np.array([np.median(repeated) for repeated in times_s]),
    )
    if len(set(sizes.tolist())) < 2 or sizes.shape != times.shape or not np.all(times > 0):
        raise ValueError("a fit needs a positive time for each of at least two sizes")
    latency_s, beta = _line(sizes, times)
    if beta <= 0:
        raise ValueError(
            "in these times, larger messages do not take longer: measure larger messages, or "
            "measure more often"
        )
    return Link(float(latency_s), float(1 / beta))


def bootstrap(
    n_bytes: Sequence[float] | Array,
    times_s: Sequence[Sequence[float]] | Sequence[Array] | Array,
    resamples: int = 400,
    seed: int = 0,
) -> Array:
    """What `fit` would have given, had the measurement been made again.

    Returns an array [resamples, 2] of (latency_s, bytes_per_s).

    Each time, as many of a size's repeated times are drawn as there are, with replacement, and
    fitted anew. Efron 1979, Bootstrap methods: another look at the jackknife, Annals of Statistics
    7(1).
    """
    check_whole("resamples", resamples)
    draw = np.random.default_rng(seed)
    medians = [
        np.median(draw.choice(repeated, (resamples, len(repeated))), axis=1) for repeated in times_s
    ]
    latency_s, beta = _line(np.asarray(n_bytes, float), np.stack(medians, 1))
    return np.stack([latency_s, 1 / beta], 1)


def interval(values: Sequence[float] | Array, level: float = 0.9) -> tuple[Any, Any]:
    """(low, high) between which the middle `level` of the values lie, along the first axis.

    The values are resampled numbers, or what is predicted from them.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}: it must be a part between 0 and 1, such as 0.9")
    return tuple(np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0))


def _line(sizes: Array, times: Array) -> tuple[Any, Any]:
    """alpha and beta with the smallest sum of ((alpha + n beta - t) / t)^2, along the last axis.

    It solves the normal equations, with sizes in units of the largest.
    """
    largest = sizes.max()
    inverse, n = 1 / times, sizes / largest / times
    a, b, c = (inverse * inverse).sum(-1), (inverse * n).sum(-1), (n * n).sum(-1)
    right, below = inverse.sum(-1), n.sum(-1)
    return (c * right - b * below) / (a * c - b * b), (a * below - b * right) / (
        a * c - b * b
    ) / largest
