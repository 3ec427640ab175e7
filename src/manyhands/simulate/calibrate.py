"""Constants of a model from a few measured rows: the rest of a table is then predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from manyhands.simulate.checked_input import Array

X = TypeVar("X")


def calibrate(
    model: Callable[[dict[str, float], X], float],
    rows: Sequence[tuple[X, float]],
    guess: Mapping[str, float],
) -> dict[str, float]:
    """The constants with which `model` comes nearest to the measured rows.

    Returns a dict with the keys of `guess`.

    `model(constants, x)`: a positive number, seconds or samples a second, for what a row is about.
    `rows`: [(x, measured)], as many as there are constants at least. `guess`: {name: a positive
    number}, the right order of magnitude. The sum of the squared logarithms of predicted / measured
    becomes smallest: errors are relative. Constants stay positive. Gauss-Newton on their
    logarithms, damped as by Levenberg and Marquardt. ValueError where there are fewer rows than
    constants, or a number that is not positive.
    """
    names = list(guess)
    if len(rows) < len(names):
        raise ValueError(f"{len(rows)} rows for {len(names)} constants: a constant needs a row")
    if not all(value > 0 for value in [*guess.values(), *(measured for _, measured in rows)]):
        raise ValueError("the guess and the measured numbers are all more than 0")
    at = np.log([float(guess[name]) for name in names])

    def errors(logs: Array) -> Array:
        constants = dict(zip(names, np.exp(logs).tolist(), strict=True))
        return np.log([model(constants, x) / measured for x, measured in rows])

    now, damping = errors(at), 1e-3
    for _ in range(200):
        slopes = np.stack(
            [
                (errors(at + shift) - errors(at - shift)) / 2e-5
                for shift in 1e-5 * np.eye(len(names))
            ],
            1,
        )
        square = slopes.T @ slopes
        move = np.linalg.lstsq(
            square + damping * np.diag(np.diag(square) + 1e-12), -slopes.T @ now, rcond=None
        )[0]
        move = np.clip(move, -1, 1)
        then = errors(at + move)
        if then @ then < now @ now:
            at, now, damping = at + move, then, damping / 5
            if np.abs(move).max() < 1e-8 or now @ now < 1e-16:
                break
        elif damping > 1e8 or now @ now < 1e-16:
            break
        else:
            damping *= 4
    return dict(zip(names, np.exp(at).tolist(), strict=True))
