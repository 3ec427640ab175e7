"""Ranks that are not alike: by what factor the computing of each takes longer in one step.

The factors are drawn from a law or from measured times. They are for the `slowness` of
`training_step.step`, and for clocks.

    step(machine, layers, way, slowness(way, 0.05, "exponential", seed=1))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array
    from manyhands.simulate.training_step import Way

SPREAD, FROM = 0.01, 64  # how far ranks are apart where nothing is said, and from how many ranks on


def usual(way: Way) -> Array:
    """The factors that `step` takes where none are given.

    They are 1 below 64 ranks, and from there on exponential ones that are 1 % apart, as they are
    expected and not drawn: the slowest of p is 1 % times the sum of 1, 1/2, ..., 1/p behind.

    Large jobs never have ranks that are all alike. Goyal et al. 2017 lost 12 % from 8 to 352 GPUs,
    of which the network explains less than 1 %; ranks that are 1 to 2 % apart explain 4 to 8 %.
    """
    ranks = way.stages * way.data * way.split
    if ranks < FROM:
        return np.ones((way.stages, way.data, way.split))
    behind = np.cumsum(1 / np.arange(ranks, 0, -1))
    factors = 1 - SPREAD + SPREAD * np.random.default_rng(0).permutation(behind)
    return factors.reshape(way.stages, way.data, way.split)


def slowness(
    way: Way, spread: float, law: str | Sequence[float] | Array = "normal", seed: int = 0
) -> Array:
    """An array [stages, data, split] of factors with mean 1.

    The laws are those of `survival.slowest`.

    "normal": with a standard deviation of `spread`, never below 0. "exponential": 1 - spread, and
    an exponential tail with the mean `spread`. An array of measured times, in place of a law: drawn
    from it with replacement, in means; `spread` is not looked at then. The same seed gives the same
    factors. ValueError for another law, a spread below 0, or times that are not positive.
    """
    draw, shape = np.random.default_rng(seed), (way.stages, way.data, way.split)
    if not isinstance(law, str):
        times = np.asarray(law, float)
        if not times.size or not (times > 0).all():
            raise ValueError("measured times are positive, and there is one at least")
        drawn: Array = draw.choice(times.ravel(), shape) / times.mean()
        return drawn
    if not spread >= 0:
        raise ValueError(f"spread is {spread}: a standard deviation, in means, is 0 or more")
    if law == "normal":
        return np.maximum(0, 1 + spread * draw.standard_normal(shape))
    if law == "exponential":
        return 1 - spread + spread * draw.exponential(size=shape)
    raise ValueError(f"law is {law!r}: there are normal and exponential, or measured times")
