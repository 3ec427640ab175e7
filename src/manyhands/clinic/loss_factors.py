"""What the ranks multiply their losses by before backward, and their parts of the global mean."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING

from manyhands.clinic.tolerances import LOSS_FACTOR_TOLERANCE

if TYPE_CHECKING:
    from manyhands.clinic.records import Backward, Loss


def loss_scale(backwards: list[Backward], ranks: int = 0) -> float | None:
    """Return what a rank multiplies the mean of its loss's terms by before it calls backward.

    Over several calls in a step, it is as the one call with all of them would be. None where it is
    not known.
    """
    each, known = scale_of_each(backwards, ranks), factors(backwards, ranks)
    if each is None and by_terms(known):
        return known[0][0] / known[0][1] * sum(terms for _, terms in known)
    return each if each in (1.0, None) else each * len(backwards)


def scale_of_each(backwards: list[Backward], ranks: int = 0) -> float | None:
    """Return what the mean of each loss is multiplied by.

    None where that is not the same for all backward calls.
    """
    known = [factor for factor, _ in factors(backwards, ranks)]
    if not _same(known):
        return None
    return 1.0 if abs(known[0] - 1) < LOSS_FACTOR_TOLERANCE else known[0]


def factors(backwards: list[Backward], ranks: int = 0) -> list[tuple[float, int]]:
    """Return [(factor, terms)] of a rank's backward calls.

    The mean of each loss is multiplied by its factor, and is of so many terms; empty where that is
    not known of each of them.
    """
    known: list[tuple[float, int]] = []
    for backward in backwards:
        loss = backward["losses"][0] if len(backward["losses"]) == 1 else _sum_of(backward, ranks)
        if (
            loss["reduction"] not in ("mean", "sum")
            or not loss["value"]
            or not backward["value"]
            or not loss["terms"]
        ):
            return []
        if loss["reduction"] == "sum" and backward["value"] == loss["value"]:
            return []  # a sum as it is: one process would take it over all rows, or would divide it
        mean = loss["value"] / (loss["terms"] if loss["reduction"] == "sum" else 1)
        known.append((backward["value"] / mean, loss["terms"]))
    return known


def by_terms(known: list[tuple[float, int]]) -> bool:
    """Whether `factors` weight each term of all backward calls alike.

    They do where sums are divided by one number.
    """
    return _same([factor / terms for factor, terms in known])


def _same(numbers: list[float]) -> bool:
    return (
        bool(numbers)
        and all(map(math.isfinite, numbers))
        and (max(numbers) - min(numbers) <= LOSS_FACTOR_TOLERANCE * abs(max(numbers)))
    )


def _sum_of(backward: Backward, ranks: int) -> Loss:
    """Return several mean losses as one.

    The script's loss has to be their sum or their mean, or `ranks` times that.
    """
    losses = backward["losses"]
    total = sum(loss["value"] or 0.0 for loss in losses)
    unknown: Loss = {"reduction": "none"}
    if (
        len(losses) < 2
        or not total
        or not backward["value"]
        or any(loss["reduction"] != "mean" for loss in losses)
    ):
        return unknown
    factors = {scale * part for scale in (1, ranks or 1) for part in (1, 1 / len(losses))}
    close = [
        factor
        for factor in factors
        if abs(backward["value"] / total / factor - 1) < LOSS_FACTOR_TOLERANCE
    ]
    if not close or (close[0] == 1 and ranks == len(losses)):
        return unknown  # the latter: the sum, or `ranks` times the mean
    value = total if close[0] in (1, ranks) else total / len(losses)
    return {"reduction": "mean", "value": value, "terms": losses[0]["terms"]}


def shares(backwards: Sequence[list[Backward]], rows: Sequence[Sized]) -> list[float]:
    """By rank: its part of the global mean.

    By the terms of its losses where these are seen, else by its rows.
    """
    terms: list[int] = []  # 0 where they are not known
    for of_rank in backwards:
        each = [
            backward["losses"][0]["terms"] or 0
            for backward in of_rank
            if len(backward["losses"]) == 1
            and backward["losses"][0]["reduction"] in ("mean", "sum")
        ]
        known = (
            each
            and len(each) == len(of_rank)
            and (len(set(each)) == 1 or by_terms(factors(of_rank)))
        )
        terms.append(sum(each) if known else 0)
    if any(not count for count in terms):
        terms = [len(of_rank) for of_rank in rows]
    if any(not count for count in terms):
        terms = [1] * len(rows)
    return [count / sum(terms) for count in terms]
