"""Judge the answers in unit 09's checks, and find the mistake that a wrong answer looks like.

Every `..._problem` returns None, or the details of a FAIL line: `expected`, `got` and the likely
`mistake`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.in_kernel import NAN
from manyhands.checks.staleness import cases
from manyhands.checks.staleness.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from manyhands.checks.report import Problem
    from manyhands.checks.staleness.answers import BarrierRun
    from manyhands.checks.staleness.cases import Choice, Log, Run

RATE = 1e-3  # relative, of the largest stable rate
WAIT = 0.01  # relative, of the expected time of a step
FEW_DRAWS = 0.06  # relative: about what a thousand draws may be off
CHOICE = 0.01  # a choice may cost more than the best one by this part


def say(mistake: str, expected: Any = None, got: Any = None, **facts: Any) -> Problem:
    """Return the details of a FAIL line, whose message is filled with these facts."""
    return {"expected": expected, "got": got, "mistake": MISTAKES[mistake].format(**facts)}


def array(answer: Any) -> np.ndarray:
    """Return a learner's numbers as an array, which is empty if they are not numbers."""
    try:
        return np.asarray(answer, float)
    except (TypeError, ValueError):
        return np.empty(0)


def equal(got: Any, expected: Any) -> bool:
    """Whether two arrays have the same shape and the same numbers."""
    return np.shape(got) == np.shape(expected) and bool(
        np.all(np.asarray(got) == np.asarray(expected))
    )


def near(got: float, expected: float, rtol: float) -> bool:
    """Whether two numbers agree to `rtol`."""
    return bool(abs(got - expected) <= rtol * abs(expected))


def _named(got: Any, wrong: Mapping[str, Any], same: Callable[[Any, Any], bool]) -> str | None:
    """Return the first of the `wrong` values, {mistake: value}, that equals this one, or None."""
    return next((name for name, value in wrong.items() if same(got, value)), None)


# ------------------------------------------------------------------ 1: from the log


def two_lists(answer: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return an answer as two arrays, which are empty if it is something else."""
    first, other = answer if isinstance(answer, (tuple, list)) and len(answer) == 2 else ((), ())
    return array(first), array(other)


def versions_problem(log: Log, got: np.ndarray) -> Problem | None:
    """Return the problem with the versions that the pushes of a log have used."""
    right = cases.pulled_versions(log)
    if equal(got, right):
        return None
    if len(got) != len(right):
        return say("how many pushes", len(right), len(got))
    return say(_named(got, _wrong_versions(log), equal) or "other versions", right, got)


def _wrong_versions(log: Log) -> dict[str, list[int]]:
    """Return the versions that result if something else is counted, or a different pull is used."""
    wrong: dict[str, list[int]] = {
        "at the push": [],
        "own pushes": [],
        "anyone's pull": [],
        "events": [],
        "first pull": [],
        "own last push": [],
    }
    version, last = 0, 0
    own: dict[int, int] = {}
    where: dict[int, int] = {}
    first: dict[int, int] = {}
    after: dict[int, int] = {}
    for index, (what, worker) in enumerate(log):
        if what == "pull":
            last, where[worker] = version, index
            first.setdefault(worker, version)
            continue
        for name, value in zip(
            wrong,
            (
                version,
                own.get(worker, 0),
                last,
                where[worker],
                first.pop(worker),
                after.get(worker, 0),
            ),
            strict=True,
        ):
            wrong[name].append(value)
        version += 1
        own[worker], after[worker] = own.get(worker, 0) + 1, version
    return {**wrong, "one too many": [version + 1 for version in cases.pulled_versions(log)]}


def staleness_problem(log: Log, got: np.ndarray) -> Problem | None:
    """Return the problem with the staleness of a log's pushes."""
    versions = cases.pulled_versions(log)
    right = [t - version for t, version in enumerate(versions)]
    if equal(got, right):
        return None
    wrong = {
        "counts itself": [age + 1 for age in right],
        "negative": [-age for age in right],
        "versions again": versions,
        "own pushes only": [0] * len(right),
    }
    return say(_named(got, wrong, equal) or "other staleness", right, got)


# ------------------------------------------------------------------ 2: the replay


def history_problem(run: Run, got: np.ndarray) -> Problem | None:
    """Return the problem with the weights of all versions of a run."""
    right = cases.history(run)
    if equal(got, right):
        return None
    wrong = {
        "newest weights": _replay(run, lambda t, v: (t, t, t)),
        "onto the old ones": _replay(run, lambda t, v: (v, v, t)),
        "wrong batch": _replay(run, lambda t, v: (t, v, v)),
        "uphill": _replay(run, lambda t, v: (t, v, t), -1),
        "no rate": _replay(run, lambda t, v: (t, v, t), 1 / run.rate),
        "start is missing": right[1:],
        "end is missing": right[:-1],
    }
    all_alike = np.ndim(got) == 2 and len(got) == len(right) and not np.any(got - got[-1])
    start_lost = np.shape(got) == np.shape(right) and not equal(got[0], right[0])
    name = (
        "one array"
        if all_alike
        else _named(got, wrong, equal) or ("start changed" if start_lost else "other weights")
    )
    return say(name, right.tolist(), got.tolist())


def _replay(
    run: Run, which: Callable[[int, int], tuple[int, int, int]], factor: float = 1
) -> np.ndarray:
    """Return the history if update t starts from version `which(t, v)[0]`.

    Its gradient is at version [1] of batch [2].
    """
    weights = [run.w]
    for t, version in enumerate(run.versions):
        base, seen, batch = which(t, version)
        weights.append(
            weights[base] - factor * run.rate * cases.gradient(run, weights[seen], batch)
        )
    return np.array(weights)


# ------------------------------------------------------------------ 3: the rate


def bound(delay: int) -> float:
    """Return the largest stable rate at this delay, for a curvature of 1."""
    from manyhands.simulate.asynchrony import stable_rate

    return stable_rate(delay)


def rate_problem(curvatures: list[float], delays: list[int], got: float) -> Problem | None:
    """Return the problem with the largest stable rate for these curvatures and delays."""
    # of the direction that decides
    right, most, d = min(
        (bound(delay) / curvature, curvature, delay)
        for curvature, delay in zip(curvatures, delays, strict=True)
    )
    steepest, latest = max(curvatures), max(delays)
    at_steepest = delays[curvatures.index(steepest)]
    if near(got, right, RATE):
        return None
    if not np.isfinite(got) or got <= 0:
        return say("no rate given", right, got)
    mean = sum(curvatures) / len(curvatures)
    wrong = {
        "steepest only": bound(at_steepest) / steepest,
        "latest only": bound(latest)
        / max(h for h, delay in zip(curvatures, delays, strict=True) if delay == latest),
        "steepest and latest": bound(latest) / steepest,
        "mean delay": 2 * np.sin(np.pi / (4 * sum(delays) / len(delays) + 2)) / steepest,
        "largest": max(bound(delay) / h for h, delay in zip(curvatures, delays, strict=True)),
        "mean curvature": bound(latest) / mean,
        "all curvatures": bound(latest) / sum(curvatures),
        "multiplied": bound(d) * most,
        "no delay": 2 / most,
        "one over h": 1 / most,
        "small angle": np.pi / (2 * d + 1) / most,
        "not halved": 2 * np.sin(min(np.pi / (2 * d + 1), np.pi / 2)) / most,
        "shared out": 2 / (d + 1) / most,
        "fastest": d**d / (d + 1) ** (d + 1) / most,
        "delay counted twice": bound(d + 1) / most,
        "delay too short": bound(d - 1) / most if d else NAN,
        "half": right / 2,
    }
    name = _named(got, wrong, lambda a, b: near(a, b, RATE))
    return say(
        name or ("too large" if got > right else "too small"),
        right,
        got,
        delay=d,
        largest=f"{most:.4g}",
        steepest=f"{steepest:.4g}",
    )


# ------------------------------------------------------------------ 4: the barrier


def barrier_problem(asked: BarrierRun) -> Problem | None:
    """Return the problem with the first wrong answer of a run. Rank 0 is the server."""
    first = asked["first"]
    if not first:
        return None
    got, expected, clocks, bound = first["got"], first["expected"], first["clocks"], first["bound"]
    facts: dict[str, Any] = {
        "call": first["call"],
        "bound": bound,
        "clocks": _clocks(clocks),
        "left": first["left"],
    }
    name = _barrier_mistake(got, expected, clocks, first["waiting"], bound, facts)
    return {
        "rank": 0,
        **say(name, f"{first['call']} -> {expected}", f"{first['call']} -> {got}", **facts),
    }


def _clocks(clocks: Mapping[int, int]) -> str:
    return ", ".join(f"{worker}: {clock}" for worker, clock in clocks.items())


def _barrier_mistake(
    got: list[int] | None,
    expected: list[int],
    clocks: Mapping[int, int],
    waiting: Sequence[int],
    bound: float,
    facts: dict[str, Any],
) -> str:
    """Return the name of the mistake, and put what its message needs into `facts`."""
    slowest = min(clocks.values(), default=0)
    if got is None:
        return "no list"
    if len(set(got)) < len(got):
        return "named twice"
    early, late = (
        [worker for worker in got if worker not in expected],
        [worker for worker in expected if worker not in got],
    )
    if any(worker not in clocks for worker in early):
        facts["worker"] = next(worker for worker in early if worker not in clocks)
        return "gone"
    late.sort(key=lambda worker: facts["call"] != f"done({worker})")  # who asks comes first
    for worker in [*early, *late]:
        facts.update(worker=worker, gap=clocks[worker] - slowest)
        if worker not in waiting:
            return "told twice"
        if worker in early:
            return "one too far" if clocks[worker] - slowest == bound + 1 else "too early"
        if facts["left"] and facts["call"].startswith("done"):
            return "left: still counts"
        if facts["call"] == f"done({worker})":
            return (
                "no bound"
                if bound == np.inf
                else "strict"
                if clocks[worker] - slowest == bound
                else "held back"
            )
        return "left: nobody told" if facts["call"].startswith("leave") else "lost wake-up"
    return "order"


# ------------------------------------------------------------------ 5: backups


def step_problem(n: int, b: int, times_s: Sequence[float], got: float) -> Problem | None:
    """Return the problem with the expected time of a step."""
    right, ordered = cases.step_s(n, b, times_s), np.sort(times_s)
    if near(got, right, WAIT):
        return None
    if not np.isfinite(got):
        return say("no seconds", right, got)
    wrong = {
        "no backups": cases.step_s(n, 0, times_s),
        "waits for all": cases.step_s(n + b, 0, times_s),
        "mean time": ordered.mean(),
        "median time": np.median(ordered),
        "slowest time": ordered[-1],
        "the first": cases.step_s(1, n + b - 1, times_s),
        "n minus b": cases.step_s(max(n - b, 1), 2 * b, times_s) if n + b > 1 else NAN,
        "b-th": cases.step_s(max(b, 1), n, times_s),
        "in the sample": ordered[min(n, len(ordered)) - 1],
        "one too early": cases.step_s(max(n - 1, 1), b + 1, times_s),
        "one too late": cases.step_s(n + 1, b - 1, times_s) if b else NAN,
        "quantile": np.quantile(ordered, n / (n + b)),
        "n times": n * right,
    }
    exactly, about = (_named(got, wrong, lambda a, c: near(a, c, rtol)) for rtol in (1e-6, WAIT))  # noqa: B023
    name = exactly or ("few draws" if near(got, right, FEW_DRAWS) else about) or "other wait"
    return say(name, f"{right:.4g} s", f"{got:.4g} s", n=n, b=b, all=n + b)


def cost_with(costs: Sequence[float], got: float) -> float:
    """Return what the chosen number of backups costs, or nan if it cannot be chosen."""
    return (
        costs[int(got)] if np.isfinite(got) and got == int(got) and 0 <= got < len(costs) else NAN
    )


def _where_it_stops(costs: Sequence[float], b: int) -> int:
    """Return the b at which a search ends that begins with this one.

    It goes on while the next one costs less.
    """
    while b + 1 < len(costs) and costs[b + 1] < costs[b]:
        b += 1
    return b


def choice_problem(kind: str, case: Choice, costs: Sequence[float], got: float) -> Problem | None:
    """Return the problem if the chosen number of backups costs more than the best by CHOICE."""
    mine, best, size = cost_with(costs, got), min(costs), case.size
    if mine <= (1 + CHOICE) * best:
        return None
    if not np.isfinite(mine):
        return say("no choice", f"a whole number from 0 to {size - 1}", got)
    more = f"{100 * (mine / best - 1):.0f}"
    waits = [
        (
            cases.step_s(size - b, b, case.times)
            if kind == "fixed"
            else cases.step_s(size, b, case.times)
        )
        for b in range(size)
    ]
    wrong = (
        {"none": 0, "fewest seconds": int(np.argmin(waits)), "throughput": cases.fastest(case)}
        if kind == "fixed"
        else {"none rented": 0, "machines forgotten": int(np.argmin(waits))}
    )
    if not np.argmin(costs):
        name = "needless backups"
    else:
        name = (
            "first minimum"
            if got in tuple(map(partial(_where_it_stops, costs), (0, 1)))
            else _named(got, wrong, lambda a, c: a == c) or "other choice"
        )
    return say(
        name,
        f"{best:.4g}, with b = {int(np.argmin(costs))}",
        f"{mine:.4g}, with b = {int(got)}",
        more=more,
        size=size,
    )
