"""Ranks that fail and ranks that are late.

It tells how often to save, how long a job takes in the end, and what the slowest of many costs.

`mtbf_s` is the mean time between failures of the whole job: of one rank, divided by the number of
ranks, where ranks fail independently of each other and a failure of one stops all. Failures come at
random (a Poisson process).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array


def young_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Seconds of work between two checkpoints: sqrt(2 * checkpoint_s * mtbf_s).

    Young 1974, A first order approximation to the optimum checkpoint interval, Communications of
    the ACM 17(9). Good where a checkpoint takes little of the time between failures; else `daly_s`.
    """
    _positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    return math.sqrt(2 * checkpoint_s * mtbf_s)


def daly_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Seconds of work between two checkpoints, to a higher order than `young_s`.

    Daly 2006, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
    Generation Computer Systems 22(3), equation 37: where a checkpoint takes twice the time between
    failures or more, `mtbf_s`.
    """
    _positive(checkpoint_s=checkpoint_s, mtbf_s=mtbf_s)
    half = checkpoint_s / (2 * mtbf_s)
    if half >= 1:
        return mtbf_s
    return (
        math.sqrt(2 * checkpoint_s * mtbf_s) * (1 + math.sqrt(half) / 3 + half / 9) - checkpoint_s
    )


def job_s(
    work_s: float, every_s: float, checkpoint_s: float, restart_s: float, mtbf_s: float
) -> float:
    """The expected seconds of a job that saves after each `every_s` seconds of work.

    It has `work_s` seconds of work.

    A failure throws the job back to the last checkpoint, and costs `restart_s`, in which it can
    fail again: mtbf e^(restart/mtbf) (e^((every + checkpoint)/mtbf) - 1) work/every. Daly 2006,
    equation 20. Without failures (`mtbf_s` infinite) work + checkpoints.
    """
    _positive(work_s=work_s, every_s=every_s, mtbf_s=mtbf_s)
    if min(checkpoint_s, restart_s) < 0:
        raise ValueError(f"checkpoint_s {checkpoint_s}, restart_s {restart_s}: 0 or more")
    pieces, piece_s = work_s / every_s, every_s + checkpoint_s
    if math.isinf(mtbf_s):
        return pieces * piece_s
    return pieces * mtbf_s * math.exp(restart_s / mtbf_s) * math.expm1(piece_s / mtbf_s)


def slowest(p: int, spread: float, law: str | Sequence[float] | Array = "normal") -> float:
    """By what factor the slowest of `p` ranks is slower than an average one, expected.

    Their times have a standard deviation of `spread` times the mean. A synchronous step takes that
    much longer.

    "normal": 1 + spread * the mean of the largest of p standard normal numbers (0 for one rank,
    about sqrt(2 ln p) for very many). "exponential": times of at least 1 - spread, with an
    exponential tail: 1 + spread (H_p - 1), with the harmonic number H_p, about ln p + 0.577. An
    array of measured times, in place of a law: the mean of the largest of p drawn from it with
    replacement, in means; `spread` is not looked at then.
    """
    if p < 1 or p != int(p):
        raise ValueError(f"p = {p}: the number of ranks is a whole number from 1 up")
    if not isinstance(law, str):
        times = np.sort(np.asarray(law, float))
        if not len(times) or times[0] <= 0:
            raise ValueError("measured times are positive, and there is one at least")
        n = len(times)
        chance = np.diff((np.arange(n + 1) / n) ** p)  # that the largest of p draws is the i-th
        return float(chance @ times / times.mean())
    if law == "exponential":
        return 1 + spread * (float((1 / np.arange(1, p + 1)).sum()) - 1)
    if law != "normal":
        raise ValueError(f"law is {law!r}: there are normal and exponential, or measured times")
    z = np.linspace(-10, 10, 20_001)
    below = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z])
    # the mean is the upper end less the area below
    return 1 + spread * float(z[-1] - np.trapezoid(below**p, z))


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name} is {number}: it is more than 0")
