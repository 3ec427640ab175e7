"""Draw from the seed what unit 09's checks ask about.

These are logs of a server, schedules of versions, curvatures, workers and stragglers. Weights,
gradients and clocks are whole numbers, so right answers are right to the last bit.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Log = list[tuple[str, int]]  # ("pull" or "push", worker)


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random numbers of one purpose, which depend on the seed and its name."""
    return np.random.default_rng([seed % 2**32, *name.encode()])


# ------------------------------------------------------------------ logs and schedules


def logs(seed: int) -> list[Log]:
    """Draw three logs of a server, lists of ("pull" or "push", worker).

    Some workers pull late, and some pull twice before they push.
    """
    draw = generator(seed, "logs")
    drawn: list[Log] = []
    for workers in (2, 3, 5):
        log: Log = []
        ready = [False] * workers
        while sum(what == "push" for what, _ in log) < 8 * workers:
            worker = int(
                draw.choice(workers, p=np.arange(1, workers + 1) / (workers * (workers + 1) / 2))
            )
            what = "push" if ready[worker] and draw.random() < 0.8 else "pull"
            ready[worker] = what == "pull"
            log.append((what, worker))
        drawn.append(log)
    return drawn


def pulled_versions(log: Log) -> list[int]:
    """Return for each push the version of the weights that its worker has pulled last."""
    version = 0
    pulled: dict[int, int] = {}
    versions: list[int] = []
    for what, worker in log:
        if what == "pull":
            pulled[worker] = version
        else:
            versions.append(pulled[worker])
            version += 1
    return versions


class Run(NamedTuple):
    """A run whose gradient(w, t) = matrix w - shifts[t], all in whole numbers."""

    w: np.ndarray
    rate: int
    versions: list[int]
    matrix: np.ndarray
    shifts: np.ndarray


def runs(seed: int, stale: bool) -> list[Run]:
    """Draw three runs of a small quadratic.

    Each update is with the newest weights, or with weights that are up to six updates old.
    """
    draw = generator(seed, f"runs {stale}")
    drawn: list[Run] = []
    for size in (1, 2, 4):
        updates, fixed = int(draw.integers(9, 14)), int(draw.integers(2, 5))
        old = [
            min(t, fixed if size == 2 else int(draw.integers(0, 7))) * stale for t in range(updates)
        ]
        matrix = np.diag(draw.integers(2, 4, size)) + np.triu(draw.integers(-1, 2, (size, size)), 1)
        drawn.append(
            Run(
                draw.integers(-9, 10, size),
                2 if size == 2 else 1,
                [t - age for t, age in enumerate(old)],
                matrix,
                draw.integers(1, 6, (updates, size)),
            )
        )
    return drawn


def gradient(run: Run, w: np.ndarray, t: int) -> np.ndarray:
    """Return the gradient of batch t at the weights w, as a new array of whole numbers."""
    return run.matrix @ np.asarray(w) - run.shifts[t]


def history(run: Run) -> np.ndarray:
    """Return the weights of all versions, of shape [updates + 1, size]."""
    weights = [run.w]
    for t, version in enumerate(run.versions):
        weights.append(weights[-1] - run.rate * gradient(run, weights[version], t))
    return np.array(weights)


# ------------------------------------------------------------------ rates


def curvatures(seed: int, many: bool) -> list[tuple[list[float], list[int]]]:
    """Draw [(curvatures, delays)] with short delays and long ones.

    There is one direction, or there are several in no order. Of several directions, the steepest
    one decides in the first case, the latest one in the second, and neither in the third.
    """
    draw = generator(seed, f"curvatures {many}")
    if not many:
        # at 2 and less some wrong formulas look like others
        delays = (int(draw.integers(3, 8)), int(draw.integers(9, 40)), 2, 1, 0)
        return [([float(10 ** draw.uniform(-1.5, 1.5))], [delay]) for delay in delays]
    drawn: list[tuple[list[float], list[int]]] = []
    # curvature, delay
    for directions in (
        [(30, 4), (20, 0), (0.2, 15)],
        [(4, 14), (20, 0), (0.3, 2)],
        [(8, 9), (20, 0), (0.2, 15)],
    ):
        directions = [*directions, (2, 3), (1, 1)]
        scale = 10 ** draw.uniform(-1, 1)
        order = draw.permutation(len(directions))
        drawn.append(
            (
                [float(directions[i][0] * scale * draw.uniform(0.95, 1.05)) for i in order],
                [directions[i][1] for i in order],
            )
        )
    return drawn


# ------------------------------------------------------------------ workers


class Team(NamedTuple):
    """The seconds of each worker's steps, and who dies when."""

    bound: float
    seconds: list[list[int]]
    deaths: list[tuple[int, float]]


FAR = 130  # steps


def teams(seed: int, name: str) -> list[Team]:
    """Draw workers whose steps take whole seconds, the last one slow.

    `name` is the criterion, "lockstep", "bound" or "leave".
    """
    draw = generator(seed, name)
    drawn: list[Team] = []
    for workers, bound in zip(
        (2, 3, 5),
        {
            "lockstep": (0, 0, 0),
            "bound": (float("inf"), 1, int(draw.integers(2, 5))),
            "leave": (0, 1, 2),
        }[name],
        strict=True,
    ):
        seconds = [draw.integers(1, 5, int(draw.integers(8, 13))).tolist() for _ in range(workers)]
        seconds[-1] = [4 * step_s for step_s in seconds[-1]]
        if bound == float("inf"):  # so far ahead that no number passes for infinity
            seconds = [[1] * FAR, [2 * FAR, *seconds[-1]]]
        drawn.append(Team(bound, seconds, _deaths(seconds, bound) if name == "leave" else []))
    return drawn


def _deaths(seconds: list[list[int]], bound: float) -> list[tuple[int, float]]:
    """Let the slow worker die while others wait for it.

    Of three workers or more, another one dies before, while it waits.
    """
    from manyhands.simulate.asynchrony import Barrier, play

    steps, _ = play(seconds, Barrier(len(seconds), bound))
    slow, now_s = len(seconds) - 1, 0.0
    deaths: list[tuple[int, float]] = []
    if slow > 1:
        own = [[step for step in steps if step.worker == worker] for worker in range(slow)]
        waits = [
            (after.start_s - before.stop_s, before.stop_s, before.worker)
            for of_worker in own
            for before, after in pairwise(of_worker)
            if after.clock <= 4
        ]
        wait_s, since_s, worker = max(waits)
        now_s = since_s + wait_s / 2
        deaths.append((worker, now_s))
    longest = max(
        (step for step in steps if step.worker == slow and step.clock and step.start_s >= now_s),
        key=lambda step: step.stop_s - step.start_s,
    )
    return [*deaths, (slow, longest.stop_s - 0.5)]


# ------------------------------------------------------------------ stragglers


def times(draw: np.random.Generator) -> list[float]:
    """Draw the seconds of one gradient, which vary, and a few of which are many times as long."""
    usual = 0.2 * np.exp(draw.normal(0, 0.3, int(draw.integers(40, 61))))
    late = draw.permutation(len(usual))[: round(len(usual) * draw.uniform(0.04, 0.1))]
    usual[late] *= draw.uniform(2.5, 6, len(late))
    return usual.round(3).tolist()


def waits(seed: int) -> list[tuple[int, int, list[float]]]:
    """Draw [(n, b, times)] for the expected time of a step."""
    draw = generator(seed, "waits")
    drawn = [
        (n, b, times(draw))
        for n, b in (
            (int(draw.integers(6, 12)), 1),
            (int(draw.integers(10, 20)), 2),
            (int(draw.integers(3, 6)), 0),
            (3, 3),
            (1, 0),
        )
    ]
    return drawn + [(1, 0, wild(draw)) for _ in range(12)]


def wild(draw: np.random.Generator) -> list[float]:
    """Draw times that vary so much that the mean of too few draws is rarely right to 1 %.

    It is hardly ever right for a dozen of such lists.
    """
    while True:
        drawn = times(draw)
        if 0.8 < np.std(drawn) / np.mean(drawn) < 1:
            return drawn


class Choice(NamedTuple):
    """`size`: machines in all, or gradients in a step; steps(n) = least (1 + noise / n)."""

    size: int
    times: list[float]
    least: int
    noise: float


def steps(case: Choice, n: float) -> float:
    """Return the steps to the target if each averages n gradients.

    The form is from McCandlish et al. 2018, An Empirical Model of Large-Batch Training, section 2.
    """
    return case.least * (1 + case.noise / n)


def step_s(n: int, b: int, times_s: Sequence[float]) -> float:
    """Return the expected seconds of a step with n gradients and b backups."""
    from manyhands.simulate.asynchrony import nth_fastest_s

    return nth_fastest_s(n, n + b, times_s)


def fixed_s(case: Choice, b: int) -> float:
    """Return the time to the target with b of all machines as backups."""
    return steps(case, case.size - b) * step_s(case.size - b, b, case.times)


def rented_s(case: Choice, b: int) -> float:
    """Return the machine-seconds of a step with b machines more than gradients."""
    return (case.size + b) * step_s(case.size, b, case.times)


def choices(seed: int, kind: str) -> list[tuple[Choice, list[float]]]:
    """Draw [(case, cost of each b)], two cases without an obvious choice.

    Neither no backup, nor the shortest step, nor the most gradients a second is a good choice in
    them.
    """
    draw, cost = generator(seed, kind), {"fixed": fixed_s, "rented": rented_s}[kind]
    drawn: list[tuple[Choice, list[float]]] = []
    while len(drawn) < 2:
        case = Choice(
            int(draw.integers(12, 31)),
            times(draw),
            int(draw.integers(200, 2000)),
            float(draw.uniform(1, 10)),
        )
        costs = [cost(case, b) for b in range(case.size)]
        if min(
            costs[0], costs[-1], costs[fastest(case)] if kind == "fixed" else np.inf
        ) > 1.04 * min(costs):
            drawn.append((case, costs))
    return drawn


def edges(seed: int, kind: str) -> list[tuple[Choice, list[float]]]:
    """Draw two more cases in the form of `choices`.

    In one, no backup is best because no worker is ever late. In the other, one or two backups cost
    more than none, and many cost least.
    """
    draw, cost = generator(seed, f"edges {kind}"), {"fixed": fixed_s, "rented": rented_s}[kind]
    even = Choice(
        int(draw.integers(3, 7)),
        draw.uniform(0.2, 0.202, 40).round(4).tolist(),
        int(draw.integers(200, 2000)),
        float(draw.uniform(4, 10)),
    )
    drawn = [(even, [cost(even, b) for b in range(even.size)])]
    while len(drawn) < 2:
        late = draw.random(40) < 0.4
        often_late = Choice(
            int(draw.integers(12, 17)),
            (draw.uniform(0.2, 0.22, 40) * np.where(late, 10, 1)).round(4).tolist(),
            int(draw.integers(200, 2000)),
            float(draw.uniform(8, 10)),
        )
        costs = [cost(often_late, b) for b in range(often_late.size)]
        if costs[0] < costs[1] < costs[2] and costs[0] > 1.04 * min(costs):
            drawn.append((often_late, costs))
    return drawn


def fastest(case: Choice) -> int:
    """Return the number of backups with the most gradients a second."""
    return int(
        np.argmax(
            [(case.size - b) / step_s(case.size - b, b, case.times) for b in range(case.size)]
        )
    )


def rule(case: Choice) -> Callable[[float], float]:
    """Return the learner's `steps`, a function of n."""
    return partial(steps, case)
