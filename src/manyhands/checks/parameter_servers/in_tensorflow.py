"""Run the part of unit 08's checks that needs the notebook's kernel.

It is the learner's ParameterServerStrategy on servers in this process.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.in_kernel import array, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from manyhands.checks.parameter_servers.answers import StrategyCase

    Steps = Sequence[Sequence[tuple[np.ndarray, np.ndarray]]]  # rows of each call of each step


@contextmanager
def counted() -> Iterator[list[Any]]:
    """Keep the values that any coordinator will return for the calls scheduled inside the block."""
    from tensorflow.python.distribute.coordinator.cluster_coordinator import ClusterCoordinator

    usual = ClusterCoordinator.schedule
    calls: list[Any] = []

    def schedule(self: Any, fn: Any, args: Any = None, kwargs: Any = None) -> Any:
        calls.append(usual(self, fn, args, kwargs))
        return calls[-1]

    ClusterCoordinator.schedule = schedule
    try:
        yield calls
    finally:
        ClusterCoordinator.schedule = usual


def _gradients_in(calls: Sequence[Any], shape: tuple[int, ...]) -> int:
    """Count the scheduled calls that have returned a possible gradient.

    It has the variable's shape and is not all zeros.
    """
    import tensorflow as tf

    def holds_one(value: Any) -> bool:
        return any(
            gradient.shape == shape and np.any(gradient)
            for gradient in map(array, tf.nest.flatten(value.fetch()))
        )

    return sum(map(holds_one, calls))


def trained(function: Callable[..., Any], resolver: Any, seed: int) -> list[StrategyCase]:
    """Run the learner's function on two drawn problems, and find the mistake in its values.

    Steps have different numbers of calls and of rows.
    """
    draw = np.random.default_rng(seed)
    cases: list[StrategyCase] = []
    for columns in (3, 5):
        start, rate = draw.normal(size=columns), float(draw.uniform(0.005, 0.02))
        steps = [
            [
                (draw.normal(size=(rows, columns)), draw.normal(size=rows))
                for rows in draw.integers(2, 6, size=calls)
            ]
            for calls in draw.integers(2, 5, size=4)
        ]
        with counted() as calls:
            lent = [[(x.copy(), y.copy()) for x, y in step] for step in steps]
            answer = ask(function, resolver, start.copy(), lent, rate)
        # the function may also have shortened the lists
        spoiled = any(
            not np.array_equal(a, b)
            for given, step in zip(lent, steps, strict=False)
            for rows, own in zip(given, step, strict=False)
            for a, b in zip(rows, own, strict=False)
        )
        got, right = _exact(array(answer), start, steps, rate), _alone(start, steps, rate, sum)
        wrong = {
            "rate forgotten": _alone(start, steps, 1, sum),
            "unchanged": start,
            "one by one": _one_by_one(start, steps, rate),
            "mean": _alone(start, steps, rate, lambda gs: sum(gs) / len(gs)),
            "last only": _alone(start, steps, rate, lambda gs: gs[-1]),
            "uphill": _alone(start, steps, -rate, sum),
        }
        looks = (
            None
            if _close(got, right)
            else next(
                (name for name, value in wrong.items() if _close(got, value, 1e-6)),
                "float32" if _close(got, right, 1e-5) else "other",
            )
        )
        looks = looks or ("spoiled" if spoiled else None)
        # NumPy's arrays have a device too
        where = str(getattr(answer, "device", "")) if hasattr(answer, "assign_sub") else ""
        cases.append(
            {
                "got": got.tolist() if got.shape == start.shape else [],
                "right": right.tolist(),
                "looks": looks,
                "where": where,
                "on a server": "/job:ps/" in where,
                "scheduled": _gradients_in(calls, start.shape),
                "wanted": sum(map(len, steps)),
                "rate": rate,
                "spoiled": spoiled,
            }
        )
    return cases


def _exact(got: np.ndarray, start: np.ndarray, steps: Steps, rate: float) -> np.ndarray:
    """Return `got`.

    If it is right for the rate rounded to float32, return instead what the exact rate gives,
    because TensorFlow converts a single Python number to float32, and Keras's optimisers keep the
    rate so. Nothing else may be rounded, so the values must agree to 1e-9 with those for the
    rounded rate.
    """
    rounded = _alone(start, steps, float(np.float32(rate)), sum)
    return got + (_alone(start, steps, rate, sum) - rounded) if _close(got, rounded) else got


def _close(got: np.ndarray, right: np.ndarray, relative: float = 0.0) -> bool:
    return got.shape == right.shape and bool(
        np.all(np.abs(got - right) <= 1e-9 + relative * np.abs(right))
    )


def _gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x.T @ (x @ w - y)


def _alone(
    w: np.ndarray, steps: Steps, rate: float, together: Callable[[list[np.ndarray]], Any]
) -> np.ndarray:
    """Train in a single process, where `together` combines the gradients of a step into one."""
    for step in steps:
        w = w - rate * together([_gradient(w, x, y) for x, y in step])
    return w


def _one_by_one(w: np.ndarray, steps: Steps, rate: float) -> np.ndarray:
    for x, y in [pair for step in steps for pair in step]:
        w = w - rate * _gradient(w, x, y)
    return w
