"""Checks of unit 05, what communication costs.

A ping-pong runs on the ranks, and everything else in the notebook's kernel.

Measurements are hidden, since their latency, bandwidth and noise are drawn from the seed (`cases`).
Therefore, the truth is known, and the answers must meet it within a tolerance that the exercise
states. A learner's mistake, even an exception, becomes a FAIL line.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.communication_costs import cases, diagnosis, fits
from manyhands.checks.communication_costs.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.in_kernel import ask, ask_kept, number
from manyhands.checks.on_ranks import RankReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.communication_costs.answers import PingPongCase
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "chain", "fit", "fusion", "interval", "ping_pong", "ranks"]


check = partial(Report, criteria=CRITERIA)
# with 400 our own band can be 10 % off, so that a right band of 200 repetitions would be refused
RESAMPLES = 4000
# for so many measurements, a band of a different level is asked for as well
NARROW, NARROW_LEVEL = 8, 0.5


def ping_pong(cluster: Cluster, function: str) -> None:
    """Check the messages and times of `function(n_bytes, repeats, warm_up, peer, clock)`.

    The messages are checked by the ledger, and the times by a clock that is drawn.
    """
    with RankReport("ping-pong", cluster, CRITERIA, MISTAKES) as report:
        answers: list[list[PingPongCase]] = report.on_ranks(
            "communication_costs.ranks", "ping_pong", function, seed(), remark="hang"
        )
        values = [[case["messages"], case["others"]] for of_rank in answers for case in of_rank]
        report.judge(
            "messages", map(diagnosis.messages_problem, zip(*answers, strict=True)), values
        )
        report.judge(
            "times",
            map(diagnosis.times_problem, answers[0]),
            [case["reported"] for case in answers[0]],
            rtol=1e-9,
        )


def fit(function: Callable[..., Any]) -> None:
    """Check `function(n_bytes, times_s)` -> (latency_s, bytes_per_s) on five hidden measurements.

    They are those of the protocol for large messages.
    """
    from manyhands import simulate

    with check("fit") as report:
        fitted: list[tuple[cases.Measured, tuple[float, float]]] = []
        for measured in cases.measurements(seed()):
            with closed(simulate.fit):
                answer = ask_kept(function, measured.n_bytes, measured.times_s)
            fitted.append((measured, diagnosis.pair(answer)))
        for index, name in enumerate(report.asked):
            problems = (fits.fit_problem(index, *pair) for pair in fitted)
            report.judge(name, problems, [got[index] for _, got in fitted], rtol=fits.FIT * 1.3)


def interval(function: Callable[..., Any]) -> None:
    """Check `function(n_bytes, times_s, level, fit)` -> ((low, high), (low, high)).

    The check is how often it holds the truth and how wide it is.
    """
    level = (0.9, 0.85)[seed() % 2]
    true, n_bytes, repeated = cases.many_measurements(seed(), diagnosis.BANDS)
    with check("interval") as report:
        got, right = _bands(function, n_bytes, repeated, level)
        report.judge(
            "covers",
            [diagnosis.covers_problem(true, got, level)],
            diagnosis.covers_evidence(true, got, level),
            rtol=0.5,
        )
        problem, evidence = (
            diagnosis.width_problem(got, right, level),
            diagnosis.width_evidence(got, right),
        )
        got, right = _bands(function, n_bytes, repeated[:NARROW], NARROW_LEVEL)
        report.judge(
            "width",
            [
                problem,
                diagnosis.width_problem(got, right, NARROW_LEVEL, None if problem else level),
            ],
            [evidence, diagnosis.width_evidence(got, right)],
            rtol=1e-6,
        )


def _bands(
    function: Callable[..., Any],
    n_bytes: list[int],
    repeated: Sequence[list[list[float]]],
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the learner's bands and ours, [measurements, 2, (low, high)]."""
    from manyhands import simulate

    with closed(simulate.bootstrap, simulate.interval):
        answers = [
            ask_kept(function, n_bytes, times_s, level, simulate.fit) for times_s in repeated
        ]
    right = [
        np.transpose(simulate.interval(simulate.bootstrap(n_bytes, times_s, RESAMPLES), level))
        for times_s in repeated
    ]
    return np.array([diagnosis.two_pairs(answer) for answer in answers]), np.array(right)


def chain(
    all_gather_s: Callable[..., Any], chain_s: Callable[..., Any], best_pieces: Callable[..., Any]
) -> None:
    """Check two predictions for worlds from 1 to 1100 ranks, and the chosen number of pieces."""
    from manyhands import simulate

    with check("chain") as report:
        with closed(
            simulate.ring_s,
            simulate.chain_s,
            simulate.pattern_s,
            simulate.rounds,
            simulate.sent_bytes,
        ):
            gathers = [
                (p, n_bytes, link, number(ask(all_gather_s, p, n_bytes, *link)))
                for p, n_bytes, link in cases.worlds(seed())
            ]
            chains = [
                (p, n_bytes, pieces, link, number(ask(chain_s, p, n_bytes, pieces, *link)))
                for p, n_bytes, pieces, link in cases.chains(seed())
            ]
            chosen = [
                (p, n_bytes, link, number(ask(best_pieces, p, n_bytes, *link)))
                for p, n_bytes, link in cases.worlds(seed(), least=2)
            ]
        report.judge(
            "gather",
            (diagnosis.gather_problem(*case) for case in gathers),
            [got for *_, got in gathers],
            rtol=1e-6,
        )
        report.judge(
            "chain",
            (diagnosis.chain_problem(*case) for case in chains),
            [got for *_, got in chains],
            rtol=1e-6,
        )
        report.judge(
            "pieces",
            (diagnosis.pieces_problem(*case) for case in chosen),
            [diagnosis.chain_with(*case) for case in chosen],
            rtol=diagnosis.PIECES,
        )


def ranks(function: Callable[..., Any]) -> None:
    """Check `function(n_bytes, latency_s, bytes_per_s, limit)`.

    It returns the largest number of ranks on which the ring is not slower than the tree.
    """
    from manyhands import simulate

    asked = cases.sizes_for_ranks(seed())
    with check("ranks") as report:
        with closed(
            simulate.crossover_bytes,
            simulate.ring_s,
            simulate.tree_s,
            simulate.pattern_s,
            simulate.rounds,
        ):
            answered = [
                (n_bytes, link, limit, number(ask(function, n_bytes, *link, limit)))
                for n_bytes, link, limit in asked
            ]
        report.judge(
            "ranks",
            (diagnosis.ranks_problem(*case) for case in answered),
            [got for *_, got in answered],
            atol=0.1,
        )


def fusion(finish_s: Callable[..., Any], best_bucket_bytes: Callable[..., Any]) -> None:
    """Check when the last gradient has arrived for several sizes of buckets, and a chosen size."""
    from manyhands import simulate

    with check("fusion") as report:
        steps: list[tuple[cases.Backward, int, float]] = []
        chosen: list[tuple[cases.Backward, float]] = []
        for case in cases.backwards(seed()):
            all_reduce_s = partial(cases.all_reduce_s, case)
            with closed(simulate.finish_s, simulate.buckets):
                for limit in cases.limits(case):
                    steps.append(
                        (
                            case,
                            limit,
                            number(
                                ask_kept(finish_s, case.ready_s, case.n_bytes, limit, all_reduce_s)
                            ),
                        )
                    )
                chosen.append(
                    (
                        case,
                        number(
                            ask_kept(best_bucket_bytes, case.ready_s, case.n_bytes, all_reduce_s)
                        ),
                    )
                )
        report.judge(
            "finish",
            (diagnosis.finish_problem(*step) for step in steps),
            [got for *_, got in steps],
            rtol=1e-6,
        )
        report.judge(
            "best",
            (diagnosis.best_problem(*choice) for choice in chosen),
            [diagnosis.time_with(*choice) for choice in chosen],
            rtol=diagnosis.BEST,
        )
