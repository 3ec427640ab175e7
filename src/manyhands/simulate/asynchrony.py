"""Workers that do not wait for each other.

It tells when each begins its steps, how old its gradients are, and what backup workers gain.

A *version* counts the updates of the weights; the *staleness* of a gradient is the number of
updates between the pull of the weights that it was computed from and its own push. A worker's
*clock* counts the steps that it has finished.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array


class Step(NamedTuple):
    """The way of one gradient; the last two are None if its worker died before the push."""

    worker: int
    clock: int
    start_s: float
    stop_s: float
    version: int | None
    staleness: int | None


def stable_rate(delay: int, curvature: float = 1.0) -> float:
    """The largest learning rate at which delayed gradients do not make the weight grow.

    For w[t + 1] = w[t] - rate * curvature * w[t - delay] it is 2 sin(pi / (2 (2 delay + 1))) /
    curvature.

    Below it all roots of z^(delay + 1) - z^delay + rate * curvature lie inside the unit circle.
    ValueError for a negative delay. Levin and May 1976, A note on difference-delay equations,
    Theoretical Population Biology 9(2).
    """
    if delay < 0 or curvature <= 0:
        raise ValueError(
            f"delay {delay}, curvature {curvature}: a delay is 0 or more, "
            "and only a positive curvature has a largest rate"
        )
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature


def growth(delay: int, rate: float) -> float:
    """By which factor w grows in a step, in the long run, at curvature 1.

    It is the largest |root| of z^(delay + 1) - z^delay + rate.
    """
    coefficients = np.zeros(delay + 2)
    coefficients[0], coefficients[-1] = 1, rate
    coefficients[1] -= 1
    return float(np.abs(np.roots(coefficients)).max())


class Barrier:
    """Who may begin the next step under bounded staleness (stale synchronous parallel).

    A worker may begin a step if its clock is at most `bound` ahead of the slowest worker that is
    still there. 0: in lockstep; infinity: nobody waits. Ho et al. 2013, More Effective Distributed
    ML via a Stale Synchronous Parallel Parameter Server, NeurIPS.
    """

    def __init__(self, workers: int, bound: float) -> None:
        """Workers 0 to `workers` - 1, all at clock 0, all computing their first step."""
        self.bound, self._clocks = bound, dict.fromkeys(range(workers), 0)
        self._waiting: set[int] = set()

    def done(self, worker: int) -> list[int]:
        """`worker` has finished a step.

        Returns who may begin a step now, in ascending order; nobody is told twice.
        """
        self._clocks[worker] += 1
        self._waiting.add(worker)
        return self._release()

    def leave(self, worker: int) -> list[int]:
        """`worker` is gone: it has nothing left to do, or has died.

        Nobody waits for it any more. Returns who may begin a step now.
        """
        self._clocks.pop(worker, None)
        self._waiting.discard(worker)
        return self._release()

    def _release(self) -> list[int]:
        slowest = min(self._clocks.values(), default=0)
        free = sorted(
            worker for worker in self._waiting if self._clocks[worker] - slowest <= self.bound
        )
        self._waiting.difference_update(free)
        return free


class BarrierLike(Protocol):
    """What `play` asks who may begin: a `Barrier`, or one of your own."""

    def done(self, worker: int, /) -> Iterable[int]:
        """`worker` has finished a step: who may begin a step now."""

    def leave(self, worker: int, /) -> Iterable[int]:
        """`worker` is gone: who may begin a step now."""


def play(
    seconds: Sequence[Sequence[float]],
    barrier: BarrierLike,
    deaths: Iterable[tuple[int, float]] = (),
) -> tuple[list[Step], list[int]]:
    """Play the run of a parameter server: the steps, in the order in which they end.

    `seconds[w]` lists how long the steps of worker w take; `barrier` is asked as `Barrier` is;
    `deaths` are pairs (worker, time of its death). Messages take no time. What happens at one
    moment: deaths first, then the workers in their order. Returns (list of `Step`, who waits for
    ever).
    """
    steps, version, clocks, working, gone = [], 0, [0] * len(seconds), {}, set()
    events = [(at_s, 0, worker) for worker, at_s in deaths]

    def begin(workers: Iterable[int], now_s: float) -> None:
        for worker in workers:
            if worker not in working and worker not in gone:
                working[worker] = (now_s, version)
                heapq.heappush(events, (now_s + seconds[worker][clocks[worker]], 1, worker))

    heapq.heapify(events)
    begin(range(len(seconds)), 0)
    while events:
        now_s, finished, worker = heapq.heappop(events)
        if worker in gone:
            continue
        begun = working.pop(worker, None)
        if begun is not None:
            start_s, pulled = begun
            steps.append(
                Step(
                    worker,
                    clocks[worker],
                    start_s,
                    now_s,
                    *((pulled, version - pulled) if finished else (None, None)),
                )
            )
        version, clocks[worker] = version + finished, clocks[worker] + finished
        if not finished or clocks[worker] == len(seconds[worker]):
            gone.add(worker)
            begin(barrier.leave(worker), now_s)
        else:
            begin(barrier.done(worker), now_s)
    return steps, sorted(set(range(len(seconds))) - gone)


def nth_fastest_s(n: int, workers: int, times_s: Sequence[float] | Array) -> float:
    """Expected seconds until n of `workers` have finished. Exact: no drawing.

    Each takes one of `times_s`, at random and independently.

    The n-th of m draws is at most the k-th smallest of K times with probability P(Binomial(m, k /
    K) >= n). David and Nagaraja 2003, Order Statistics, section 2.1.
    """
    if not 1 <= n <= workers:
        raise ValueError(
            f"the {n}-th fastest of {workers} workers: n is 1 to the number of workers"
        )
    ordered = np.sort(np.asarray(times_s, float))
    parts = np.arange(1, len(ordered) + 1) / len(ordered)
    at_least = sum(
        math.comb(workers, j) * parts**j * (1 - parts) ** (workers - j)
        for j in range(n, workers + 1)
    )
    return float(np.diff(at_least, prepend=0.0) @ ordered)
