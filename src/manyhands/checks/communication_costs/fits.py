"""How the check of unit 05's fit judges a latency or a bandwidth, and its mistakes."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.communication_costs.diagnosis import near, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.communication_costs.cases import Measured
    from manyhands.checks.report import Problem

FIT = 0.10  # latency and bandwidth, relative
# a few disturbed times make a mean several times too large, so what is further off has a different
# cause
FAR = 10


def fit_problem(index: int, measured: Measured, got: tuple[float, float]) -> Problem | None:
    """Return the problem with a fit, where `index` is 0 for the latency and 1 for the bandwidth."""
    value, right, cut = got[index], measured.large[index], measured.cut
    if abs(value / right - 1) <= FIT:
        return None
    n_bytes, medians = (
        np.array(measured.n_bytes, float),
        np.array([np.median(times_s) for times_s in measured.times_s]),
    )
    numbers: dict[str, Any] = {"expected": right, "got": value}
    if not np.isfinite(value):
        return say("no pair", **numbers)
    if near(got[1 - index], right, FIT):
        return say("exchanged", **numbers)
    if index and near(value, 1 / right, FIT):
        return say("beta", **numbers)
    if name := _line_of(value, index, n_bytes, measured):
        return say(name, **numbers, largest=f"{n_bytes[-1] / 1e6:.3g}")
    if not index and near(value, medians[cut], 0.03):
        return say("smallest message", **numbers, smallest=f"{n_bytes[cut]:.0f}")
    if index and near(value, n_bytes[-1] / medians[-1], 0.05):
        return say("latency left in", **numbers)
    if near(value, measured.small[index], FIT):
        return say("small protocol", **numbers)
    far = got[0] / measured.large[0], got[1] / measured.large[1]
    # sizes of the other protocol would make the latency smaller
    if far[0] > 1 > far[1] and 1 / FAR < far[index] < FAR:
        return say("disturbed", **numbers)
    return say(("other latency", "other bandwidth")[index], **numbers)


def _line_of(value: float, index: int, n_bytes: np.ndarray, measured: Measured) -> str | None:
    """Return the mistake if the value is that of a line through all sizes from some size on.

    It is the line's latency (`index` 0) or bandwidth (1). Otherwise return None.
    """
    ways: tuple[tuple[str | None, Callable[[list[float]], Any], bool], ...] = (
        (None, np.median, True),
        ("largest decide", np.median, False),
        ("disturbed", np.mean, True),
        ("disturbed", itemgetter(0), True),
    )
    for mistake, middle, relative in ways:
        times_s = np.array([middle(measured_s) for measured_s in measured.times_s])
        for first in range(len(n_bytes) - 1):
            n, t = n_bytes[first:], times_s[first:]
            if near(value, _line(n, t, 1 / t if relative else None)[index], 1e-3):
                return mistake or (
                    "one line"
                    if not first
                    else "sizes of both"
                    if first < measured.cut
                    else "too few sizes"
                )
    return None


def _line(
    n_bytes: np.ndarray, times_s: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """Return (latency_s, bytes_per_s) of the line with the smallest errors."""
    seconds_per_byte, latency_s = np.polyfit(n_bytes, times_s, 1, w=weights)
    return latency_s, 1 / seconds_per_byte
