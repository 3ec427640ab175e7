"""How the checks of unit 17 judge, with the right answers in numpy.

The mistakes that wrong answers look like are here, too. Every `..._problem` returns None, or the
details of a FAIL line: `expected`, `got` and the likely `mistake`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from manyhands.checks.in_kernel import NAN, number
from manyhands.checks.large_batches.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manyhands.checks.report import Details, Problem

    Phases = Sequence[tuple[float, float]]  # (epochs, rate)
    Plan = tuple[Phases, int, int]  # phases, batch, largest batch

# One-sided 95 % points of Student's t, by degrees of freedom. The true mean may exceed the mean of
# n runs by this many standard errors.
T_95 = {4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812, 11: 1.796}


def say(mistake: str, expected: Any = None, got: Any = None, **words: Any) -> Problem:
    """Return the details of a FAIL line, without those that are None."""
    details: dict[str, Any] = {
        "expected": expected,
        "got": got,
        "mistake": MISTAKES[mistake].format(**words),
    }
    return cast("Problem", {key: value for key, value in details.items() if value is not None})


def near(got: Any, expected: Any, rtol: float = 1e-9) -> bool:
    """Return whether numbers have the same shape and differ by little."""
    got, expected = np.asarray(got, float), np.asarray(expected, float)
    return got.shape == expected.shape and bool(
        np.all(np.abs(got - expected) <= rtol * (1e-3 + np.abs(expected)))
    )


def named(got: Any, wrong: Mapping[str, Any], rtol: float = 1e-6) -> str | None:
    """Return the name of the first of the wrong answers that equals this one, or None."""
    return next((name for name, value in wrong.items() if near(got, value, rtol)), None)


# ------------------------------------------------------------------ 2: LARS


def lars(
    weights: Sequence[np.ndarray],
    gradients: Any,
    memory: Sequence[np.ndarray],
    rate: float,
    momentum: float,
    decay: float,
    trust: float,
    looks: Sequence[str] = (),
) -> Sequence[np.ndarray]:
    """Take one step on numpy arrays, in place, where `looks` names the mistakes to make."""

    def norm(values: np.ndarray) -> Any:
        return np.sqrt(
            (values**2).sum()
            if "runs together" in looks
            else (values**2).sum(tuple(range(1, values.ndim)), keepdims=True)
        )

    def all_layers(values: Sequence[np.ndarray]) -> list[Any]:
        total = (
            sum(
                (value**2).sum(tuple(range(1, value.ndim)), keepdims=True).reshape(-1)
                for value in values
            )
            ** 0.5
        )
        return [total.reshape(-1, *[1] * (value.ndim - 1)) for value in values]

    of_weights, of_gradients = (
        (all_layers if "global" in looks else lambda values: list(map(norm, values)))(values)
        for values in (weights, gradients)
    )
    for w, g, v, w_norm, g_norm in zip(
        weights, gradients, memory, of_weights, of_gradients, strict=True
    ):
        below = g_norm + (0 if "decay not in the norm" in looks else decay * w_norm)
        below = norm(g + decay * w) if "norm of the sum" in looks else below
        usual = (w_norm > 0) & (g_norm > 0)
        if "inverted" in looks:
            w_norm, below = below, w_norm
        ratio = (
            (1 if "trust forgotten" in looks else trust) * w_norm / np.where(below > 0, below, 1)
        )
        ratio = _where_zero(ratio, usual, w_norm, g_norm, trust, looks)
        ratio = 1.0 if "plain" in looks else ratio
        direction = ratio * (g + (0 if "decay not in the step" in looks else decay) * w)
        inside = 1 if "rate outside" in looks else rate
        v[:] = (
            0 if "no memory" in looks else 0.9 if "momentum fixed" in looks else momentum
        ) * v + inside * direction
        w -= rate * v if {"rate outside", "rate twice"} & set(looks) else v
    return weights


def _where_zero(
    ratio: Any, usual: Any, w_norm: Any, g_norm: Any, trust: float, looks: Sequence[str]
) -> Any:
    """Return the ratio where no norm is zero, and 1 elsewhere, or what a mistake makes of that."""
    if "stands still" in looks:
        return ratio
    if "zero gradient" in looks:
        return np.where(w_norm > 0, ratio, 1)
    if "zero weights" in looks:
        return np.where(g_norm > 0, ratio, 1)
    if "zero in any run" in looks:
        return ratio if np.all(usual) else np.ones_like(ratio)
    return np.where(
        usual, ratio, 0 if "ratio of 0" in looks else trust if "ratio of trust" in looks else 1
    )


LARS_RTOL = 1e-5  # some solutions add a tiny number below the fraction line
# at most one mistake of each group is made, and a criterion looks at its own group first
GROUPS = {
    "ratio": ("plain", "global", "runs together", "inverted", "trust forgotten"),
    "decay": ("norm of the sum", "decay not in the norm", "decay not in the step"),
    "memory": ("rate twice", "rate outside", "no memory", "momentum fixed"),
    "zero": (
        "stands still",
        "zero gradient",
        "zero weights",
        "zero in any run",
        "ratio of 0",
        "ratio of trust",
    ),
}
SEEN = {
    "ratio": ("ratio", "memory"),
    "decay": ("decay", "ratio", "memory"),
    "memory": ("memory", "ratio", "decay"),
    "zero": ("zero", "ratio", "decay", "memory"),
}


def _mistakes(name: str) -> list[tuple[str, ...]]:
    """Return tuples of mistakes that a criterion may see, the shortest tuples first.

    The mistakes of a tuple are each from a different group.
    """
    groups = [(None, *GROUPS[group]) for group in SEEN[name]]
    combinations = [tuple(filter(None, combination)) for combination in product(*groups)]
    return sorted(
        filter(None, combinations), key=lambda looks: (len(looks), looks[0] not in GROUPS[name])
    )


def lars_after(
    start: Sequence[np.ndarray], gradients: Any, steps: Sequence[Any], looks: Sequence[str] = ()
) -> np.ndarray:
    """Return the weights after the steps, as one flat array.

    `steps` are (rate, momentum, decay, trust), and the gradients of each step are given.
    """
    weights = [w.copy() for w in start]
    memory = [np.zeros_like(w) for w in start]
    for these, numbers in zip(gradients, steps, strict=True):
        rate, momentum, decay, trust = numbers
        lars(weights, these, memory, rate, momentum, decay, trust, looks)
    return flat(weights)


def flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the arrays as one vector."""
    return np.concatenate([np.ravel(array) for array in arrays])


def lars_problem(
    name: str,
    start: Sequence[np.ndarray],
    gradients: Any,
    steps: Sequence[Any],
    got: np.ndarray,
    touched: bool = False,
) -> Problem | None:
    """Judge a LARS step.

    `touched`: the learner's function has changed the gradients that it was given.
    """
    right = lars_after(start, gradients, steps)
    if near(got, right, LARS_RTOL):
        return say("gradients changed") if touched else None
    if got.shape != right.shape:
        return say("other shapes")
    # the numbers before it are equal
    first = next((i for i in range(len(right)) if not near(got[i], right[i], LARS_RTOL)), 0)
    details: Details = {"expected": right[first : first + 4], "got": got[first : first + 4]}
    if not np.all(np.isfinite(got)):
        return say("zero norm", **details)
    if near(got, flat(start)):
        return say("not in place", **details)
    with np.errstate(all="ignore"):
        looks = next(
            (
                looks
                for looks in _mistakes(name)
                if near(got, lars_after(start, gradients, steps, looks), LARS_RTOL)
            ),
            (),
        )
    return {**details, "mistake": _lars_words(name, looks, *_place(start, first))}


def _place(start: Sequence[np.ndarray], index: int) -> tuple[int, int]:
    """Return (layer, run) of a number of the flat array."""
    for layer, w in enumerate(start):
        if index < w.size:
            return layer, index // w[0].size
        index -= w.size
    raise IndexError(index)


def _lars_words(name: str, looks: Sequence[str], layer: int, run: int) -> str:
    if not looks:
        return MISTAKES["other step"].format(layer=layer, run=run)
    words = " ".join(MISTAKES[look] for look in looks)
    return (
        MISTAKES["zero is right"] + words
        if name == "zero" and not set(looks) & set(GROUPS["zero"])
        else words
    )


# ------------------------------------------------------------------ 3: the noise of the gradient


def noise_scale(
    small: np.ndarray, large: np.ndarray, b_small: int, b_large: int
) -> tuple[float, float, float]:
    """Return (|G|^2, the trace of the covariance, their quotient).

    They are computed as in McCandlish et al. 2018, appendix A.1.
    """
    of_small, of_large = (float((np.asarray(g) ** 2).sum(1).mean()) for g in (small, large))
    squared, trace = (
        (b_large * of_large - b_small * of_small) / (b_large - b_small),
        (of_small - of_large) / (1 / b_small - 1 / b_large),
    )
    return squared, trace, trace / squared


def noise_problem(
    index: int, case: tuple[np.ndarray, np.ndarray, int, int], got: Sequence[float]
) -> Problem | None:
    """Judge one of the three numbers that were returned."""
    small, large, b_small, b_large = case
    right = noise_scale(*case)
    if near(got[index], right[index], 1e-6):
        return None
    means = noise_scale(
        small.mean(0, keepdims=True), large.mean(0, keepdims=True), b_small, b_large
    )
    norms = [float(np.linalg.norm(g, axis=1).mean()) for g in (small, large)]
    first = (
        (b_large * norms[1] - b_small * norms[0]) / (b_large - b_small),
        (norms[0] - norms[1]) / (1 / b_small - 1 / b_large),
    )
    each_step = [
        noise_scale(rows, mean[None], b_small, b_large)
        for rows, mean in zip(np.array_split(small, len(large)), large, strict=True)
    ]
    ranks = len(small) // len(large)
    first_rank = noise_scale(small[::ranks], large, b_small, b_large) if ranks > 1 else [NAN] * 3
    every_row = (
        noise_scale(small, small.mean(0, keepdims=True), b_small, b_small * len(small))
        if ranks > 1
        else [NAN] * 3
    )
    exchanged = noise_scale(small, large, b_large, b_small)
    wrong = {
        "mean before norm": means,
        "not squared": (*first, first[1] / first[0]),
        "sizes exchanged": exchanged,
        "large is not enough": (
            float((large**2).sum(1).mean()),
            NAN,
            right[1] / float((large**2).sum(1).mean()),
        ),
        "mean of quotients": (NAN, NAN, float(np.mean([scale[2] for scale in each_step]))),
        "first rank": first_rank,
        "one large batch": every_row,
        "upside down": (NAN, NAN, 1 / right[2]),
        "without the sizes": (NAN, float((small**2).sum(1).mean() - (large**2).sum(1).mean()), NAN),
    }
    name = next(
        (name for name, values in wrong.items() if near(got[index], values[index], 1e-6)),
        "other estimate",
    )
    return say(name, right[index], got[index], b_small=b_small, b_large=b_large)


def three(answer: Any) -> list[float]:
    """Return the learner's three numbers, or three NaN if there are not three."""
    try:
        values = [number(value) for value in answer]
    except TypeError:
        values = []
    return values if len(values) == 3 else [NAN] * 3


# ------------------------------------------------------------------ 4: growing the batch


def sgd_noise(rate: float, momentum: float, images: int, batch: int) -> float:
    """Return the scale of the noise of SGD (Smith and Le 2018), with momentum."""
    return rate / (1 - momentum) * (images / batch - 1)


def sgd_noise_problem(case: tuple[float, float, int, int], got: float) -> Problem | None:
    """Judge one scale of the noise."""
    rate, momentum, images, batch = case
    right = sgd_noise(*case)
    if near(got, right, 1e-6):
        return None
    wrong = {
        "g without -1": rate / (1 - momentum) * images / batch,
        "g without momentum": rate * (images / batch - 1),
        "g divided by m": rate / momentum * (images / batch - 1),
        "g times 1 - m": rate * (1 - momentum) * (images / batch - 1),
        "g upside down": rate / (1 - momentum) * (batch / images - 1),
    }
    return say(named(got, wrong) or "other g", right, got, images=images, batch=batch)


def grow(phases: Phases, batch: int, largest: int) -> list[tuple[float, float, int]]:
    """Return [(epochs, rate, batch)], where the batch grows instead of a rate that drops."""
    grown = []
    for epochs, rate in phases:
        # rounded down, because with a larger batch the rate would be above the first
        larger = min(largest, int(batch * phases[0][1] / rate + 1e-9))
        grown.append((epochs, rate * larger / batch, larger))
    return grown


def rows_of(answer: Any, count: int) -> np.ndarray | None:
    """Return the learner's phases as an array [count, 3], or None."""
    try:
        rows = np.array([[number(value) for value in row] for row in answer], float)
    except TypeError:
        return None
    return (
        rows
        if rows.shape == (count, 3) and np.all(np.isfinite(rows)) and np.all(rows[:, 1:] > 0)
        else None
    )


def _has_phases(phases: Phases, rows: np.ndarray | None) -> bool:
    return rows is not None and near(rows[:, 0], [epochs for epochs, _ in phases])


def phases_problem(case: Plan, rows: np.ndarray | None) -> Problem | None:
    """Judge whether rate / batch is what it was, in every phase."""
    phases, batch, largest = case
    if rows is None or not _has_phases(phases, rows):
        return say("no phases", count=len(phases))
    for i, ((_, rate), (_, mine, size)) in enumerate(zip(phases, rows, strict=True)):
        if not near(mine / size, rate / batch, 1e-6):
            drop = phases[0][1] / rate
            name = (
                "falls twice"
                if near(mine, rate) and size > batch
                else (
                    "nothing falls"
                    if near(mine, phases[0][1]) and near(size, batch)
                    else (
                        "rounded only"
                        if near(mine, phases[0][1]) and abs(size - batch * drop) < 1
                        else (
                            "cut off"
                            if near(size, largest) and mine / size > rate / batch
                            else (
                                "root of the drop"
                                if near(size, batch * drop**0.5, 0.05)
                                else "other noise"
                            )
                        )
                    )
                )
            )
            return say(
                name,
                f"{rate / batch:.4g} in phase {i}",
                f"{mine / size:.4g}: rate {mine:.4g}, batch {size:g}",
                largest=largest,
                drop=f"{drop:g}",
            )
    return None


def fewest_problem(case: Plan, rows: np.ndarray | None) -> Problem | None:
    """Judge whether a plan takes as few steps as possible."""
    phases, batch, largest = case
    if rows is None or not _has_phases(phases, rows):
        return say("no phases", count=len(phases))
    if max(rows[:, 2]) > largest:
        return say("above the largest", f"at most {largest}", max(rows[:, 2]), largest=largest)
    if any(size != int(size) for size in rows[:, 2]):
        return say("no whole batch", got=next(size for size in rows[:, 2] if size != int(size)))
    both: tuple[Any, Any] = (grow(*case), rows)
    right, mine = (sum(epochs / size for epochs, _, size in some) for some in both)
    if near(mine, right, 1e-6):
        return None
    less = next(
        (
            (size, whole)
            for (*_, whole), (*_, size) in zip(grow(*case), rows, strict=True)
            if size != whole
        ),
        None,
    )
    quotients = [batch * phases[0][1] / rate for _, rate in phases]
    if less and all(
        whole == size or (size == whole - 1 and near(quotient, whole))
        for quotient, (*_, whole), (*_, size) in zip(quotients, grow(*case), rows, strict=True)
    ):
        return say("cut too far", less[1], less[0])
    return say(
        (
            "batch kept"
            if near(rows[:, 2], [batch] * len(rows))
            else "too many steps"
            if mine > right
            else "too few steps"
        ),
        f"{right * 1000:.4g} steps for 1000 images in an epoch",
        f"{mine * 1000:.4g}",
        largest=largest,
    )


# ------------------------------------------------------------------ 5: the challenge


def bound(differences: Any) -> float:
    """Return the upper end of the one-sided 95 % interval for the differences of n runs.

    The interval is for their mean.
    """
    d = np.asarray(differences, float)
    return float(d.mean() + T_95[len(d) - 1] * d.std(ddof=1) / len(d) ** 0.5)


def budget_problem(
    passed: Sequence[int], batch: int, allowed: int, error: str | None
) -> Problem | None:
    """Judge the budget.

    `passed`: the sizes of all batches of which a gradient was taken. `allowed`: the number of
    images.
    """
    if error and "BudgetSpent" in error:
        return say("asked for more", f"{allowed // batch} steps", "more", steps=allowed // batch)
    if passed and min(passed) < batch:
        return say("small batches", f"at least {batch}", min(passed), batch=batch)
    if sum(passed) > allowed:
        return say(
            "too many images", f"{allowed} images", f"{sum(passed)} images", steps=allowed // batch
        )
    return say("no images", f"{allowed} images", "0 images") if not passed else None


def accuracy_problem(
    small: Any, large: Any, margin: float, trained: Sequence[float]
) -> Problem | None:
    """Judge the accuracy.

    `small`, `large`: errors of all runs in per cent. `trained`: the mean errors of both on the
    training images.
    """
    upper = bound(np.asarray(large) - small)
    if upper <= margin:
        return None
    words = {
        "small": f"{np.mean(small):.1f}",
        "large": f"{np.mean(large):.1f}",
        "upper": f"{upper:.1f}",
        "margin": f"{margin:g}",
    }
    name = (
        "broken"
        if np.max(large) > 60
        else "not learned yet"
        if trained[1] > trained[0] + margin
        else "worse on the test"
    )
    return say(
        name,
        f"at most {margin:g} points above {words['small']} %",
        f"{words['large']} %, upper end {words['upper']} points above",
        **words,
    )
