"""Checks of unit 01, data parallelism by hand, which ask the ranks and judge the answers.

The experiments run on the ranks (`ranks`). A hang becomes FAIL lines, and the cluster heals.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from manyhands.checks import seed
from manyhands.checks.data_parallel import diagnosis
from manyhands.checks.data_parallel.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.data_parallel.answers import GradientCase, RowsCase, ShareCase, StepCase
    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster

    T = TypeVar("T")

__all__ = ["HINTS", "gradients", "rows", "share", "step"]

check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)


def _cases(answers: list[list[T]]) -> list[tuple[int, T]]:
    """Return all cases of all ranks, as (rank, case)."""
    return [(rank, case) for rank, cases in enumerate(answers) for case in cases]


def rows(cluster: Cluster, function: str) -> None:
    """Check the slices of `function(n, rank, world_size)`.

    They must cover each row once and be of about the same size.
    """
    with check("rows", cluster) as report:
        cases: list[RowsCase]
        cases, *_ = report.on_ranks("data_parallel.ranks", "rows", function, seed())
        report.judge("cover", map(diagnosis.cover_problem, cases), [case["got"] for case in cases])
        report.judge(
            "even",
            map(diagnosis.even_problem, cases),
            [[len(rows) for rows in case["got"]] for case in cases],
        )


def gradients(cluster: Cluster, function: str) -> None:
    """Check `function(model, group)` by the sums of gradients, and by what was sent.

    There are tied and frozen parameters, and missing gradients.
    """
    with check("gradients", cluster) as report:
        remark = "group"
        with report.part("sum", "bytes"):
            answers: list[list[GradientCase]] = report.on_ranks(
                "data_parallel.ranks", "gradients", function, seed(), remark=remark
            )
            diagnosis.note_complete(answers)
            remark = (
                "missing"
                if _judge_gradients(report, "sum", answers, diagnosis.gradient_problem)
                else remark
            )
            moved = diagnosis.sent_by_group(answers)
            problems = (diagnosis.bytes_problem(*pair) for pair in moved)
            report.judge(
                "bytes", problems, [diagnosis.bytes_evidence(*pair) for pair in moved], atol=0.5
            )
        answers = report.on_ranks("data_parallel.ranks", "missing", function, seed(), remark=remark)
        _judge_gradients(report, "missing", answers, diagnosis.missing_problem)


def _judge_gradients(
    report: RankReport,
    name: str,
    answers: list[list[GradientCase]],
    problem_of: Callable[[int, GradientCase], Problem | None],
) -> bool:
    cases = _cases(answers)
    values = [
        [
            case["frozen"],
            bool(case.get("not waited")),
            [gradient["got"] for gradient in case["gradients"].values()],
        ]
        for _, case in cases
    ]
    return report.judge(
        name, (problem_of(rank, case) for rank, case in cases), values, atol=diagnosis.ATOL
    )


def share(cluster: Cluster, function: str) -> None:
    """Check that the values of a function add up to the objective.

    It is `function(model, x, y, n, decay, world_size)`.
    """
    with check("share", cluster) as report:
        # each as every rank has reported it
        all_cases: list[tuple[ShareCase, ...]] = list(
            zip(*report.on_ranks("data_parallel.ranks", "shares", function, seed()), strict=True)
        )
        for name in ("losses", "decay"):
            cases = [case for case in all_cases if bool(case[0]["decay"]) == (name == "decay")]
            values = [[[answer["value"], answer["gradient"]] for answer in case] for case in cases]
            report.judge(name, map(diagnosis.share_problem, cases), values, atol=diagnosis.ATOL)


def step(cluster: Cluster, function: str) -> None:
    """Check the weights and objectives of `function(model, x, y, rate, decay, group)`.

    They must be those of a single process.
    """
    with check("step", cluster) as report:
        answers: list[list[StepCase]] = report.on_ranks(
            "data_parallel.ranks", "steps", function, seed(), remark="group"
        )
        cases, apart, groups = (
            _cases(answers),
            diagnosis.groups_apart(answers),
            diagnosis.by_group(answers),
        )
        problems = (
            diagnosis.weights_problem(rank, case, apart, groups[tuple(case["members"])])
            for rank, case in cases
        )
        report.judge(
            "weights",
            problems,
            [[case["got"], case["frozen"], case["beyond"]] for _, case in cases],
            atol=diagnosis.ATOL,
        )
        problems = (diagnosis.objective_problem(rank, case) for rank, case in cases)
        report.judge(
            "objective", problems, [case["reported"] for _, case in cases], atol=diagnosis.ATOL
        )
