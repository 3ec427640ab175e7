"""Checks of unit 13, channel-parallel convolution.

This is what the notebook's kernel asks of the ranks and how it judges the answers. Each check cell
calls one of the public functions with the cluster and the names of what the learner has defined on
the ranks. The experiments run there (`ranks`) on communicators with a short timeout. Ranks that
wait for each other in vain then get an exception, which becomes a FAIL line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks import seed
from manyhands.checks.channel_parallel import diagnosis
from manyhands.checks.channel_parallel.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from manyhands.checks.channel_parallel.answers import (
        LayerCase,
        MovedAnswer,
        OperatorCase,
        PairCase,
        PartCase,
        Result,
    )
    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "in_split", "moved", "operators", "out_split", "pair", "part"]

# longer than the timeout of the experiments' communicators, whose message says more
TIMEOUT_S = 20


class _Check(RankReport):
    def __init__(self, name: str, cluster: Cluster) -> None:
        super().__init__(name, cluster, CRITERIA, MISTAKES, TIMEOUT_S)

    def judge_close(self, name: str, problems: Iterable[Problem | None], values: Any) -> None:
        """Judge a criterion whose values are compared to the unit's tolerance."""
        self.judge(name, problems, values, atol=diagnosis.ATOL, rtol=diagnosis.ATOL)


def _samples(results: Sequence[Result]) -> list[list[Any]]:
    return [[result["right"], result["sample"]] for result in results]


# ------------------------------------------------------------------ 1: part


def part(cluster: Cluster, function: str) -> None:
    """Check that `function(conv, split, rank, size)` returns this rank's weight and bias.

    Both must be leaves with separate memory.
    """
    with _Check("part", cluster) as report:
        cases: list[PartCase]
        cases, *_ = report.on_ranks("channel_parallel.ranks", "part", function, seed())
        report.judge_close(
            "cut", map(diagnosis.part_problem, cases), [_samples(case["results"]) for case in cases]
        )
        report.judge_close(
            "memory",
            map(diagnosis.held_problem, cases),
            [[case["whole"], case["held"]] for case in cases],
        )


# ------------------------------------------------------------------ 2: operators


def operators(cluster: Cluster, copy: str, total: str, join: str) -> None:
    """Check forward and backward of the three operators `(x, c)`, and what each of them moves."""
    with _Check("operators", cluster) as report:
        answers: list[list[OperatorCase]] = report.on_ranks(
            "channel_parallel.ranks", "operators", copy, total, join, seed()
        )
        cases = [case for answer in answers for case in answer]
        problems = (diagnosis.output_problem(case, case["which"]) for case in cases)
        report.judge_close(
            "forward",
            problems,
            [[_samples(case["results"][:1]), case["detached"]] for case in cases],
        )
        for case in cases:
            case["gradients"] = case["results"][1:]
        problems = (
            diagnosis.gradients_problem(case, case["which"])
            for case in diagnosis.detached_first(cases)
        )
        report.judge_close("backward", problems, [_samples(case["gradients"]) for case in cases])
        _judge_bytes(report, cases, diagnosis.operator_limits, lambda case: case["which"])


def _judge_bytes(
    report: _Check,
    cases: Sequence[Any],
    limits_of: Callable[[Any], tuple[diagnosis.Limits, diagnosis.Limits]],
    topic_of: Callable[[Any], str],
) -> None:
    problems, values = [], []
    for case, forward, backward in diagnosis.totals(cases):
        for direction, total, limits in zip(
            ("forward", "backward"), (forward, backward), limits_of(case), strict=True
        ):
            problems.append(
                diagnosis.bytes_problem(total, limits, topic_of(case), direction, case["detached"])
            )
            values.append(diagnosis.evidence(total, limits))
    report.judge_close("bytes", problems, values)


# ------------------------------------------------------------------ 3, 4, 5: layers


def out_split(cluster: Cluster, function: str) -> None:
    """Check `function(x, weight, bias, c, stride, padding)`, which is split by output channels."""
    _layer("out-split", cluster, function, "out")


def in_split(cluster: Cluster, function: str) -> None:
    """Check `function(x, weight, bias, c, stride, padding)`, which is split by input channels."""
    _layer("in-split", cluster, function, "in")


def _layer(name: str, cluster: Cluster, function: str, split: str) -> None:
    with _Check(name, cluster) as report:
        answers: list[list[LayerCase]] = report.on_ranks(
            "channel_parallel.ranks", "layer", function, split, seed()
        )
        _judge_layer(report, answers, split, lambda case: diagnosis.layer_limits(case, split))


def _judge_layer(
    report: _Check,
    answers: Sequence[Sequence[Any]],
    topic: str,
    limits_of: Callable[[Any], tuple[diagnosis.Limits, diagnosis.Limits]],
) -> None:
    cases = [case for answer in answers for case in answer]
    problems = (diagnosis.output_problem(case, topic) for case in cases)
    report.judge_close(
        "values", problems, [[_samples(case["results"]), case["detached"]] for case in cases]
    )
    problems = (
        diagnosis.gradients_problem(case, topic) for case in diagnosis.detached_first(cases)
    )
    report.judge_close("gradients", problems, [_samples(case["gradients"]) for case in cases])
    _judge_bytes(report, cases, limits_of, lambda case: topic)


def pair(cluster: Cluster, function: str) -> None:
    """Check `function(x, first, second, c, padding)`, which is two layers.

    They are an out split, a ReLU and an in split, with one sum in all.
    """
    with _Check("pair", cluster) as report:
        answers: list[list[PairCase]] = report.on_ranks(
            "channel_parallel.ranks", "pair", function, seed()
        )
        _judge_layer(report, answers, "pair", diagnosis.pair_limits)


# ------------------------------------------------------------------ 6: moved


def moved(cluster: Cluster, function: str, side: str) -> None:
    """Check what the learner predicts against what is measured.

    The functions are `function(way, x, weight, y, size)` and `side(batch, c_in, c_out, kernel)`.
    """
    with _Check("moved", cluster) as report:
        answers: list[MovedAnswer] = report.on_ranks(
            "channel_parallel.ranks", "moved", function, side, seed()
        )
        by_rank = [case for answer in answers for case in answer["cases"]]
        cases = {(case["size"], case["way"]): case for case in by_rank}
        sent = {
            key: sum(case["sent"] for case in by_rank if (case["size"], case["way"]) == key)
            for key in cases
        }
        problems = (diagnosis.moved_problem(case, sent[key]) for key, case in cases.items())
        report.judge_close("bytes", problems, [case["predicted"] for case in cases.values()])
        sides = answers[0]["sides"]
        report.judge_close(
            "side",
            diagnosis.side_problems(sides),
            [[case["got"], isinstance(case["got"], int)] for case in sides],
        )
