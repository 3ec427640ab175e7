"""Check unit 08, parameter servers, by asking the ranks from the kernel and judging the answers.

The experiments run on the ranks (`ranks`, `train_ranks`), with one, two and three of the five ranks
as servers. A hang ends after a few seconds and becomes FAIL lines, and the cluster heals.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report, seed
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.parameter_servers import diagnosis
from manyhands.checks.parameter_servers.messages import CRITERIA, HINTS, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.parameter_servers.answers import (
        PlacedCase,
        ServersCase,
        TensorsCase,
        TrainCase,
    )
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "asynchronous", "exchange", "place", "servers", "step", "strategy", "train"]

ATOL = 1e-8
check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)


def _judge_values(
    report: RankReport, name: str, answers: Sequence[Sequence[TensorsCase]], topic: str
) -> None:
    """Judge all cases of one topic, whichever rank has reported them."""
    cases = [
        (rank, case) for rank, some in enumerate(answers) for case in some if case["topic"] == topic
    ]
    # the first problem is shown, and "other" says least
    specific_first = sorted(cases, key=lambda ranked: ranked[1]["looks"] == "other")
    problems = (diagnosis.value_problem(rank, case, topic) for rank, case in specific_first)
    report.judge(
        name, problems, [[case["got"], case.get("count", 0)] for _, case in cases], atol=ATOL
    )


def place(cluster: Cluster, function: str) -> None:
    """Check that `function(shapes, workers, servers, link_bytes)` puts all rows on servers.

    A server's link must carry no more bytes than it may.
    """
    with check("place", cluster) as report:
        cases: list[PlacedCase]
        cases, *_ = report.on_ranks("parameter_servers.ranks", "place", function, seed())
        for name in report.asked:
            problem_of, evidence_of = (
                getattr(diagnosis, f"{name}_problem"),
                getattr(diagnosis, f"{name}_evidence"),
            )
            report.judge(name, map(problem_of, cases), [evidence_of(case) for case in cases])


def exchange(cluster: Cluster, push: str, take: str, give: str, pull: str) -> None:
    """Check the four functions of a push and a pull.

    The criteria are what the servers take and what the workers have afterwards.
    """
    with check("exchange", cluster) as report:
        answers = report.on_ranks(
            "parameter_servers.ranks", "exchange", push, take, give, pull, seed(), remark="hang"
        )
        _judge_values(report, "push", answers, "push")
        _judge_values(report, "pull", answers, "pull")


def step(cluster: Cluster, function: str) -> None:
    """Check that `function(mine, workers, rate, decay)` takes a step, and answers after it.

    It is one step of gradient descent on all workers' rows.
    """
    with check("step", cluster) as report:
        answers = diagnosis.with_what_is_kept(
            report.on_ranks("parameter_servers.ranks", "step", function, seed(), remark="hang")
        )
        _judge_values(report, "update", answers, "step")
        _judge_values(report, "answer", answers, "answer")


def asynchronous(cluster: Cluster, function: str) -> None:
    """Check the variables and the staleness that `function(mine, schedule, rate, decay)` gives.

    They must be those of this order of pushes.
    """
    with check("asynchronous", cluster) as report:
        answers = report.on_ranks(
            "parameter_servers.train_ranks", "asynchronous", function, seed(), remark="hang"
        )
        _judge_values(report, "values", answers, "asynchronous")
        reported: list[tuple[int, Any]] = [
            (rank, case) for rank, some in enumerate(answers) for case in some if "wanted" in case
        ]
        report.judge(
            "staleness",
            (diagnosis.stale_problem(*ranked) for ranked in reported),
            [case["stale"] for _, case in reported],
        )


def servers(cluster: Cluster, function: str) -> None:
    """Check `function(workers, n_bytes, latency_s, bytes_per_s, limit_s)`.

    It returns the smallest number of servers that keeps the limit, or None.
    """
    with check("servers", cluster) as report:
        cases: list[ServersCase]
        cases, *_ = report.on_ranks("parameter_servers.train_ranks", "servers", function, seed())
        report.judge(
            "number",
            map(diagnosis.servers_problem, cases),
            [[case["got"], round(case["limit_s"], 6)] for case in cases],
        )


def strategy(function: Callable[..., Any], resolver: Any) -> None:
    """Check `function(resolver, start, steps, rate)`, which uses ParameterServerStrategy here.

    In this kernel, the check is where the variable is stored, what was scheduled, and the values at
    the end.
    """
    from manyhands.checks.parameter_servers import in_tensorflow

    with Report("strategy", CRITERIA) as report:
        cases = in_tensorflow.trained(function, resolver, seed())
        report.judge(
            "places",
            map(diagnosis.places_problem, cases),
            [
                [
                    case["on a server"],
                    case["scheduled"] >= case["wanted"],
                    case["wanted"],
                    case["rate"],
                ]
                for case in cases
            ],
        )
        report.judge(
            "weights",
            map(diagnosis.strategy_problem, cases),
            [[case["got"], case["spoiled"]] for case in cases],
            atol=ATOL,
        )


def train(cluster: Cluster, place: str, push: str, pull: str, step: str) -> None:
    """Check all functions together on a network with two and with three servers.

    The criteria are its weights and the bytes on the servers' links.
    """
    with check("train", cluster) as report:
        answers: list[list[TrainCase]] = report.on_ranks(
            "parameter_servers.train_ranks", "train", place, push, pull, step, seed(), remark="hang"
        )
        cases = [case for some in answers for case in some]
        problems: Iterable[Any] = (
            diagnosis.value_problem(case["rank"], case, "train") for case in cases
        )
        if any(case["bytes"] is None for case in cases):
            problems = [{"mistake": MISTAKES["place first"]}]
        # what a server keeps depends on the placement
        of_workers = [case["got"] for case in cases if not case["server"]]
        report.judge("weights", problems, of_workers, atol=ATOL)
        report.judge(
            "limit",
            map(diagnosis.link_problem, cases),
            [diagnosis.link_evidence(case) for case in cases],
        )
