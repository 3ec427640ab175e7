"""Check unit 09, asynchrony and staleness.

The barrier runs on the server's rank and everything else in the notebook's kernel. Runs are
replayed from schedules that the seed draws (`cases`), in whole numbers, so that no answer depends
on how long anything takes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import ask_kept, ask_noting_changes, number
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.staleness import cases, diagnosis
from manyhands.checks.staleness.messages import CRITERIA, HINTS, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.report import Problem
    from manyhands.checks.staleness.answers import BarrierRun
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "backups", "barrier", "rate", "replay", "versions"]

check = partial(Report, criteria=CRITERIA)


def versions(function: Callable[..., Any]) -> None:
    """Check that `function(log)` returns (versions, staleness) for three logs."""
    with check("versions") as report:
        logs = cases.logs(seed())
        with closed(cases.pulled_versions):
            answers = [diagnosis.two_lists(ask_kept(function, log)) for log in logs]
        answered = list(zip(logs, *zip(*answers, strict=True), strict=True))
        report.judge(
            "versions",
            (diagnosis.versions_problem(log, got) for log, got, _ in answered),
            [got for _, got, _ in answered],
        )
        report.judge(
            "staleness",
            (diagnosis.staleness_problem(log, got) for log, _, got in answered),
            [got for *_, got in answered],
        )


def replay(function: Callable[..., Any]) -> None:
    """Check that `function(w, rate, versions, gradient)` returns the weights of all versions.

    It is called without delay and with schedules that are drawn.
    """
    with check("replay") as report:
        runs = {name: cases.runs(seed(), name == "stale") for name in report.asked}
        for name, few in runs.items():
            answers = [
                ask_noting_changes(
                    function, run.w, run.rate, list(run.versions), partial(cases.gradient, run)
                )
                for run in few
            ]
            histories = [diagnosis.array(got) for got, _ in answers]
            problems: list[Problem | None] = [
                diagnosis.history_problem(run, got) or ({"mistake": spoiled} if spoiled else None)
                for run, got, (_, spoiled) in zip(few, histories, answers, strict=True)
            ]
            report.judge(
                name,
                problems,
                [
                    [got, bool(spoiled)]
                    for got, (_, spoiled) in zip(histories, answers, strict=True)
                ],
            )


def rate(function: Callable[..., Any]) -> None:
    """Check `function(curvatures, delays)` to a thousandth.

    There is one direction at five delays, and there are several directions with their own delays.
    """
    from manyhands.simulate.asynchrony import stable_rate

    with check("rate") as report:
        asked = {name: cases.curvatures(seed(), name == "curvatures") for name in report.asked}
        with closed(stable_rate):
            rates = {
                name: [
                    number(ask_kept(function, list(slopes), list(delays))) for slopes, delays in few
                ]
                for name, few in asked.items()
            }
        for name, got in rates.items():
            problems = (
                diagnosis.rate_problem(*case, mine)
                for case, mine in zip(asked[name], got, strict=True)
            )
            report.judge(name, problems, got, rtol=1.5 * diagnosis.RATE)


def barrier(cluster: Cluster, name: str) -> None:
    """Check the learner's class `name(workers, bound)` on rank 0.

    It runs in lockstep, with bounds, and with workers that leave.
    """
    with RankReport("barrier", cluster, CRITERIA, MISTAKES) as report:
        on_rank_0: dict[str, list[BarrierRun]]
        on_rank_0, *_ = report.on_ranks("staleness.ranks", "barrier", name, seed())
        for criterion, runs in on_rank_0.items():
            report.judge(
                criterion, map(diagnosis.barrier_problem, runs), [run["answers"] for run in runs]
            )


def backups(
    step_s: Callable[..., Any], best_b: Callable[..., Any], cheapest_b: Callable[..., Any]
) -> None:
    """Check the expected time of a step, to 1 %, and the two choices.

    Each choice may cost at most 1 % more than the best.
    """
    from manyhands.simulate.asynchrony import nth_fastest_s

    with check("backups") as report:
        waits = cases.waits(seed())
        fixed, rented = (
            cases.choices(seed(), kind) + cases.edges(seed(), kind) for kind in ("fixed", "rented")
        )
        with closed(nth_fastest_s):
            waited = [number(ask_kept(step_s, n, b, times)) for n, b, times in waits]
            chosen = [
                number(ask_kept(best_b, case.size, case.times, cases.rule(case)))
                for case, _ in fixed
            ]
            cheap = [number(ask_kept(cheapest_b, case.size, case.times)) for case, _ in rented]
        problems = (
            diagnosis.step_problem(*case, mine) for case, mine in zip(waits, waited, strict=True)
        )
        report.judge("step", problems, waited, rtol=1.5 * diagnosis.WAIT)
        for kind, few, got in (("fixed", fixed, chosen), ("rented", rented, cheap)):
            values = [
                diagnosis.cost_with(costs, mine) for (_, costs), mine in zip(few, got, strict=True)
            ]
            problems = (
                diagnosis.choice_problem(kind, *choice, mine)
                for choice, mine in zip(few, got, strict=True)
            )
            report.judge(kind, problems, np.nan_to_num(values), rtol=diagnosis.CHOICE)
