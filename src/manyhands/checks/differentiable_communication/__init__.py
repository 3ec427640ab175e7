"""Check unit 11, differentiable communication.

The notebook's kernel asks the ranks and judges the answers. The experiments run on the ranks
(`ranks`). A hang ends after a few seconds and becomes a FAIL line, and the cluster recovers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from manyhands.checks import seed
from manyhands.checks.differentiable_communication import diagnosis
from manyhands.checks.differentiable_communication.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.differentiable_communication.answers import (
        AllgatherCase,
        BroadcastCase,
        ConnectCase,
        MessageCase,
        Moved,
        OrderCase,
        RingCase,
    )
    from manyhands.cluster import Cluster

    C = TypeVar("C")

__all__ = ["HINTS", "allgather", "broadcast", "connect", "messages", "ring"]

check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)


def _cases(answers: Sequence[Sequence[C]]) -> list[tuple[int, C]]:
    """Return all cases of all ranks, as (rank, case)."""
    return [(rank, case) for rank, cases in enumerate(answers) for case in cases]


def messages(cluster: Cluster, send: str, recv: str) -> None:
    """Check the autograd functions `send` and `recv` for their gradients, in any order.

    Nothing may be sent twice.
    """
    with check("messages", cluster) as report:
        with report.part("gradients", "bytes"):
            by_rank: list[list[MessageCase]] = report.on_ranks(
                "differentiable_communication.ranks",
                "round_trips",
                send,
                recv,
                seed(),
                remark="hang",
            )
            cases = _cases(by_rank)
            problems = (diagnosis.message_problem(rank, case) for rank, case in cases)
            report.judge(
                "gradients", problems, [case["got"] for _, case in cases], atol=diagnosis.ATOL
            )
            report.judge(
                "bytes",
                (diagnosis.sent_problem(rank, case) for rank, case in cases),
                [case["sent"] for _, case in cases],
            )
        answers: list[OrderCase] = report.on_ranks(
            "differentiable_communication.ranks",
            "other_order",
            send,
            recv,
            seed(),
            remark="order hang",
        )
        problems = (diagnosis.order_problem(rank, case) for rank, case in enumerate(answers))
        report.judge(
            "order",
            problems,
            [[case["got"] or [], case["spoiled"]] for case in answers],
            atol=diagnosis.ATOL,
        )


def broadcast(cluster: Cluster, function: str) -> None:
    """Check the autograd function `function(x, root, group)`.

    Its gradient must be a sum at the root and zero elsewhere, and it must not move more bytes than
    that takes.
    """
    with check("broadcast", cluster) as report:
        answers: list[list[BroadcastCase]] = report.on_ranks(
            "differentiable_communication.ranks", "broadcast", function, seed(), remark="group"
        )
        cases = _cases(answers)
        at_root = [(rank, case) for rank, case in cases if case["me"] == case["root"]]
        problems = (diagnosis.broadcast_problem(rank, case) for rank, case in at_root)
        report.judge(
            "sum",
            problems,
            [[case["got"], case["spoiled"]] for _, case in at_root],
            atol=diagnosis.ATOL,
        )
        others = [(rank, case) for rank, case in cases if case["me"] != case["root"]]
        problems = (
            diagnosis.elsewhere_problem(rank, case)
            for rank, case in sorted(others, key=lambda pair: -pair[1]["me"])
        )
        # None is as good as zeros
        values = [[case["got"] or [0.0] * case["size"], case["spoiled"]] for _, case in others]
        report.judge("others", problems, values, atol=diagnosis.ATOL)
        _judge_bytes(report, cases, lambda ranks: ranks - 1, "broadcast moves")


def allgather(cluster: Cluster, function: str) -> None:
    """Check the autograd function `function(x, group)`.

    It must give each rank the sum of all ranks' gradients of its piece, and it must not move more
    bytes than that takes.
    """
    with check("allgather", cluster) as report:
        answers: list[list[AllgatherCase]] = report.on_ranks(
            "differentiable_communication.ranks", "allgather", function, seed(), remark="group"
        )
        cases = _cases(answers)
        problems = (diagnosis.allgather_problem(rank, case) for rank, case in cases)
        report.judge(
            "sum",
            problems,
            [[case["got"], case["spoiled"]] for _, case in cases],
            atol=diagnosis.ATOL,
        )
        _judge_bytes(report, cases, lambda ranks: ranks * (ranks - 1), "allgather moves")


def _judge_bytes(
    report: RankReport,
    cases: Sequence[tuple[int, Moved]],
    messages_of: Callable[[int], int],
    mistake: str,
) -> None:
    groups = diagnosis.grouped(cases)
    problems = (
        diagnosis.total_problem(group, messages_of(len(group)), mistake) for group in groups
    )
    report.judge("bytes", problems, [diagnosis.total(group) for group in groups], atol=0.5)


def connect(cluster: Cluster, round_trip: str, fan_out: str) -> None:
    """Check that one backward on each rank reaches everything.

    The learner's functions are `round_trip(c, x, stage, last)` and `fan_out(c, pieces, own_loss)`.
    """
    with check("connect", cluster) as report:
        for part, function in (("round-trip", round_trip), ("fan-out", fan_out)):
            with report.part(part):
                answers: list[list[ConnectCase]] = report.on_ranks(
                    "differentiable_communication.ranks",
                    "connect",
                    part,
                    function,
                    seed(),
                    patience_s=12,
                )
                cases = _cases(answers)
                cut = diagnosis.cut_on(cases)
                judgements = (
                    diagnosis.connect_problem(rank, case, cut.get(tuple(case["members"]), ()))
                    for rank, case in cases
                )
                problems = sorted(filter(None, judgements), key=diagnosis.most_telling)
                values = [
                    [list(case.get("got", {}).values()), case.get("value")] for _, case in cases
                ]
                report.judge(part, problems, values, atol=diagnosis.ATOL)


def ring(cluster: Cluster, function: str) -> None:
    """Check that `function(x, group)` is a ring of one message for each rank.

    A rehearsal for GPUs must find nothing in it.
    """
    with check("ring", cluster) as report:
        answers: list[list[RingCase]] = report.on_ranks(
            "differentiable_communication.ranks", "ring", function, seed(), remark="ring hang"
        )
        cases = _cases(answers)
        problems = (diagnosis.shift_problem(rank, case) for rank, case in cases)
        report.judge(
            "values",
            problems,
            [[case["got"], case["overwritten"]] for _, case in cases],
            atol=diagnosis.ATOL,
        )
        groups = diagnosis.grouped(cases)
        report.judge(
            "rehearsal",
            map(diagnosis.rehearsal_problem, groups),
            [[diagnosis.moved_by_nccl(group), diagnosis.found_for_nccl(group)] for group in groups],
        )
