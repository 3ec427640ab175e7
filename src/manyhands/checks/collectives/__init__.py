"""Checks of unit 04, collectives, which ask the ranks from the kernel and judge the answers.

The experiments run on the ranks (`ranks`), in groups of 5, 3 and 2 of them, and each call runs
under a ledger. A hang ends after a few seconds and becomes a FAIL line, and the cluster heals.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from manyhands.checks import seed
from manyhands.checks.collectives import diagnosis
from manyhands.checks.collectives.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.collectives.answers import Case, Costs
    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "all_gather", "all_reduce", "broadcast", "cost", "halving", "reduce_scatter"]

check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)
# where the learner's own code has cut x
CUT = MISTAKES | {"known": {**MISTAKES["known"], "index out of range": MISTAKES["fewer pieces"]}}
# where a rank looks for a partner
PARTNERS = MISTAKES | {"known": {**MISTAKES["known"], "index out of range": MISTAKES["partner"]}}


def _judge_values(report: RankReport, answers: Sequence[Sequence[Case]], topic: str) -> None:
    cases = [case for answer in answers for case in answer]
    # the first problem is shown, and "own" says least
    specific_first = sorted(cases, key=lambda case: case["looks"] == "own")
    report.judge(
        "values",
        (diagnosis.value_problem(case, topic) for case in specific_first),
        [case["sample"] for case in cases],
    )


def _judge_traffic(
    report: RankReport,
    name: str,
    traffic: Sequence[diagnosis.Traffic],
    problem_of: Callable[..., Problem | None],
    evidence_of: Callable[..., Any],
    *args: int,
) -> None:
    # a large tensor says most
    specific_first = sorted(traffic, key=lambda call: -call.size)
    report.judge(
        name,
        (problem_of(call, *args) for call in specific_first),
        [evidence_of(call, *args) for call in traffic],
    )


def broadcast(cluster: Cluster, function: str) -> None:
    """Check that `function(x, root, group)` puts the root's numbers on every rank, along a tree."""
    with check("broadcast", cluster) as report:
        answers = report.on_ranks("collectives.ranks", "broadcast", function, seed(), remark="hang")
        _judge_values(report, answers, "broadcast")
        traffic = diagnosis.traffic(answers)
        _judge_traffic(report, "once", traffic, diagnosis.once_problem, diagnosis.once_evidence)
        _judge_traffic(report, "tree", traffic, diagnosis.tree_problem, diagnosis.tree_evidence)


def reduce_scatter(cluster: Cluster, function: str) -> None:
    """Check that `function(chunks, group)` leaves the sum of chunk r on rank r, along a ring."""
    _half("reduce-scatter", cluster, function)


def all_gather(cluster: Cluster, function: str) -> None:
    """Check that `function(chunks, group)` puts every rank's own chunk on all ranks, in a ring."""
    _half("all-gather", cluster, function)


def _half(name: str, cluster: Cluster, function: str) -> None:
    with check(name, cluster) as report:
        answers = report.on_ranks(
            "collectives.ranks", name.replace("-", "_"), function, seed(), remark="hang"
        )
        _judge_values(report, answers, name)
        _judge_traffic(report, "ring", diagnosis.traffic(answers), _half_problem, _half_evidence, 1)


def _half_problem(traffic: diagnosis.Traffic, halves: int) -> Problem | None:
    return diagnosis.ring_problem(traffic, halves) or diagnosis.bytes_problem(traffic, halves)


def _half_evidence(traffic: diagnosis.Traffic, halves: int) -> tuple[Any, Any]:
    return diagnosis.ring_evidence(traffic, halves), diagnosis.bytes_evidence(traffic, halves)


def all_reduce(cluster: Cluster, function: str) -> None:
    """Check that `function(x, group)` leaves the sum in place on every rank, along a ring.

    Each rank must send 2 (p - 1)/p of the bytes.
    """
    with check("all-reduce", cluster, mistakes=CUT) as report:
        answers = report.on_ranks(
            "collectives.ranks", "all_reduce", function, seed(), remark="hang"
        )
        _judge_values(report, answers, "all-reduce")
        traffic = diagnosis.traffic(answers)
        _judge_traffic(
            report, "bytes", traffic, diagnosis.bytes_problem, diagnosis.bytes_evidence, 2
        )
        _judge_traffic(report, "ring", traffic, diagnosis.ring_problem, diagnosis.ring_evidence, 2)


def halving(cluster: Cluster, function: str) -> None:
    """Check that `function(x, group)` leaves the sum in place on every rank of 4 and of 2.

    It must use halving and doubling, with no more bytes than that needs.
    """
    with check("halving", cluster, mistakes=PARTNERS) as report:
        answers = report.on_ranks("collectives.ranks", "halving", function, seed(), remark="hang")
        _judge_values(report, answers, "halving")
        _judge_traffic(
            report,
            "bytes",
            diagnosis.traffic(answers),
            diagnosis.halving_problem,
            diagnosis.halving_evidence,
        )


def cost(cluster: Cluster, most_bytes: str, rounds: str) -> None:
    """Check `most_bytes(way, p, n_bytes)` and `rounds(way, p)` against what the ledger counts.

    For worlds that are too large to run, they are checked against formulas.
    """
    with check("cost", cluster) as report:
        answers: list[Costs] = report.on_ranks(
            "collectives.ranks", "cost", most_bytes, rounds, seed(), remark="hang"
        )
        seen = {
            (call.p, call.way): call
            for call in diagnosis.traffic([answer["cases"] for answer in answers])
        }
        known = [
            case for answer in answers for case in answer["cases"] if case["me"] == 0
        ] + answers[0]["large"]
        # None: a world that is too large to run
        asked = [(case, seen.get((case["p"], case["way"]))) for case in known]
        names: tuple[
            tuple[Literal["bytes", "rounds"], Literal["predicted bytes", "predicted rounds"]], ...
        ] = (("bytes", "predicted bytes"), ("rounds", "predicted rounds"))
        for name, key in names:
            some = [(case, traffic) for case, traffic in asked if case[key] is not None]
            problems = (
                diagnosis.predicted_problem(
                    name, case["way"], case["p"], case["bytes"], case[key], traffic
                )
                for case, traffic in some
            )
            report.judge(
                name, problems, [case[key] for case, _ in some], atol=0.5 * (name == "bytes")
            )
