"""Checks of unit 11, differentiable communication: what the notebook's kernel asks of the ranks, and how it judges the answers.

The experiments run on the ranks (`ranks`); a hang ends after a few seconds, becomes a FAIL line, and the cluster heals.
"""

from functools import partial

from manyhands.checks import seed
from manyhands.checks.differentiable_communication import verdicts
from manyhands.checks.differentiable_communication.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport, first

__all__ = ["HINTS", "allgather", "broadcast", "connect", "messages"]

_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _cases(answers):
    """All cases of all ranks, as (rank, case)."""
    return [(rank, case) for rank, cases in enumerate(answers) for case in cases]


def messages(cluster, send, recv):
    """Check the autograd functions `send` and `recv`: gradients, in any order, and nothing sent twice."""
    report = _report("messages", cluster, {"gradients": 2, "bytes": 1, "order": 1})
    answers = report.experiment("differentiable_communication.ranks", "round_trips", send, recv, seed(), only=("gradients", "bytes"), remark="hang")
    if answers is not None:
        cases = _cases(answers)
        problem = first(verdicts.message_problem(rank, case) for rank, case in cases)
        report.judge("gradients", not problem, values=[case["got"] for _, case in cases], atol=verdicts.ATOL, **problem)
        problem = first(verdicts.sent_problem(rank, case) for rank, case in cases)
        report.judge("bytes", not problem, values=[case["sent"] for _, case in cases], **problem)
    answers = report.experiment("differentiable_communication.ranks", "other_order", send, recv, seed(), only=("order",), remark="order hang")
    if answers is not None:
        problem = first(verdicts.order_problem(rank, case) for rank, case in enumerate(answers))
        report.judge("order", not problem, values=[case["got"] for case in answers if case["got"]], atol=verdicts.ATOL, **problem)
    report.show()


def broadcast(cluster, function):
    """Check the autograd function `function(x, root, group)`: a sum at the root, zero elsewhere, and no more bytes than that takes."""
    report = _report("broadcast", cluster, {"sum": 1, "others": 1, "bytes": 1})
    answers = report.experiment("differentiable_communication.ranks", "broadcast", function, seed(), remark="group")
    if answers is not None:
        cases = _cases(answers)
        at_root = [(rank, case) for rank, case in cases if case["me"] == case["root"]]
        problem = first(verdicts.broadcast_problem(rank, case) for rank, case in at_root)
        report.judge("sum", not problem, values=[case["got"] for _, case in at_root], atol=verdicts.ATOL, **problem)
        others = [(rank, case) for rank, case in cases if case["me"] != case["root"]]
        problem = first(verdicts.elsewhere_problem(rank, case) for rank, case in sorted(others, key=lambda one: -one[1]["me"]))
        values = [case["got"] or [0.0] * case["size"] for _, case in others]  # None is as good as zeros
        report.judge("others", not problem, values=values, atol=verdicts.ATOL, **problem)
        groups = verdicts.grouped(cases)
        problem = first(verdicts.total_problem(group, len(group) - 1, "broadcast moves") for group in groups)
        report.judge("bytes", not problem, values=[verdicts.total(group) for group in groups], atol=0.5, **problem)
    report.show()


def allgather(cluster, function):
    """Check the autograd function `function(x, group)`: each rank's own gradients from all ranks, summed, and no more bytes than that."""
    report = _report("allgather", cluster, {"sum": 2, "bytes": 1})
    answers = report.experiment("differentiable_communication.ranks", "allgather", function, seed(), remark="group")
    if answers is not None:
        cases = _cases(answers)
        problem = first(verdicts.allgather_problem(rank, case) for rank, case in cases)
        report.judge("sum", not problem, values=[case["got"] for _, case in cases], atol=verdicts.ATOL, **problem)
        groups = verdicts.grouped(cases)
        problem = first(verdicts.total_problem(group, len(group) * (len(group) - 1), "allgather moves") for group in groups)
        report.judge("bytes", not problem, values=[verdicts.total(group) for group in groups], atol=0.5, **problem)
    report.show()


def connect(cluster, round_trip, fan_out):
    """Check `round_trip(c, x, stage, last)` and `fan_out(c, pieces, own_loss)`: one backward on each rank reaches everything."""
    report = _report("connect", cluster, {"round-trip": 1, "fan-out": 1})
    answers = report.experiment("differentiable_communication.ranks", "connect", round_trip, fan_out, seed(), patience_s=12)
    if answers is not None:
        for part in ("round-trip", "fan-out"):
            cases = [(rank, case) for rank, case in _cases(answers) if case["part"] == part]
            problem = first(sorted(filter(None, (verdicts.connect_problem(rank, case) for rank, case in cases)), key=verdicts.most_telling))
            values = [[list(case.get("got", {}).values()), case.get("value")] for _, case in cases]
            report.judge(part, not problem, values=values, atol=verdicts.ATOL, **problem)
    report.show()
