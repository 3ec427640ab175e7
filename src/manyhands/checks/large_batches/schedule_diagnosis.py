"""How the check of unit 17's schedule judges (see `diagnosis`)."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.large_batches.diagnosis import named, near, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.report import Problem

    # the arguments of `rate_at`, without the epoch and with it
    Schedule = tuple[float, int, str, float, list[float], int]
    Asked = tuple[float, float, int, str, float, list[float], int]


def rate_at(
    epoch: float,
    base_rate: float,
    k: int,
    rule: str,
    warm_up: float,
    drops: Sequence[float],
    drop_by: float,
) -> float:
    """Return the rate of the step that begins at `epoch`."""
    full = base_rate * (k if rule == "linear" else k**0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(epoch >= drop for drop in drops)


def arguments(case: Sequence[Any]) -> str:
    """Return the arguments of a call of `rate_at`, with their names."""
    return ", ".join(
        f"{name}={_plain(value)}"
        for name, value in zip(signature(rate_at).parameters, case, strict=True)
    )


def _plain(value: Any) -> str:
    return repr(float(value) if isinstance(value, np.floating) else value)


def _rate_problem(case: Asked, got: float, name: str | None, **words: Any) -> Problem:
    """Return the call, which a learner can repeat, with the right answer and the mistake."""
    epoch, _, k, rule, warm_up, *_ = case
    asked = ", ".join(map(_plain, case))
    name = (name or "other rate") if np.isfinite(got) else "no rate"
    return say(
        name,
        f"rate_at({asked}) -> {rate_at(*case):.6g}",
        "not a number" if np.isnan(got) else f"{got:.6g}",
        epoch=epoch,
        k=k,
        rule=rule,
        warm_up=warm_up,
        **words,
    )


def scaling_problem(case: Asked, got: float) -> Problem | None:
    """Judge a rate after the warm-up and before any drop."""
    epoch, base_rate, k, rule, warm_up, *_ = case
    right = rate_at(*case)
    if near(got, right):
        return None
    wrong = {
        "not scaled": base_rate,
        "divided": base_rate / k,
        "root of all": (base_rate * k) ** 0.5,
        "other rule": base_rate * (k**0.5 if rule == "linear" else k),
        "warm-up too long": base_rate + (right - base_rate) * epoch / (warm_up or 1),
    }
    return _rate_problem(case, got, named(got, wrong))


def warm_up_problem(case: Asked, got: float) -> Problem | None:
    """Judge a rate during the warm-up."""
    epoch, base_rate, _, _, warm_up, *_ = case
    full = rate_at(warm_up, *case[1:])
    if near(got, rate_at(*case)):
        return None
    wrong = {
        "no warm-up": full,
        "constant": base_rate,
        "from zero": full * epoch / warm_up,
        "geometric": base_rate * (full / base_rate) ** (epoch / warm_up),
        "staircase": base_rate + (full - base_rate) * int(epoch) / warm_up,
    }
    if epoch <= 0:
        wrong = {"no warm-up": full, "from zero": 0.0}
    return _rate_problem(case, got, named(got, wrong))


def drops_problem(case: Asked, got: float) -> Problem | None:
    """Judge a rate after one drop or several."""
    epoch, *_, drops, by = case
    full = rate_at(*case[:5], [], by)
    if near(got, rate_at(*case)):
        return None
    # the first schedule that is asked for has no warm-up, so the other mistakes fail there
    wrong = {
        "after the warm-up": full / by ** sum(epoch - case[4] >= drop for drop in drops),
        "whole epochs": full / by ** sum(int(epoch) >= drop for drop in drops),
        "late": full / by ** sum(epoch > drop for drop in drops),
        "no drop": full,
        "drops once": full / by,
        "drop by the sum": full / (by * sum(epoch >= drop for drop in drops) or 1),
        "grows": full * by ** sum(epoch >= drop for drop in drops),
    }
    return _rate_problem(case, got, named(got, wrong), drops=drops, by=by)
