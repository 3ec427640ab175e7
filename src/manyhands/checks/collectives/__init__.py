"""Checks of unit 04, collectives: what the notebook's kernel asks of the ranks, and how it judges the answers.

The experiments run on the ranks (`ranks`), on groups of 5, 3 and 2 of them, each call under a ledger. A hang ends after a few
seconds, becomes a FAIL line, and the cluster heals.
"""

from functools import partial

from manyhands.checks import seed
from manyhands.checks.collectives import verdicts
from manyhands.checks.collectives.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport, first

__all__ = ["HINTS", "all_gather", "all_reduce", "broadcast", "cost", "reduce_scatter"]

_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _judge_values(report, answers, topic):
    cases = [case for answer in answers for case in answer]
    problem = first(verdicts.value_problem(case, topic) for case in sorted(cases, key=lambda case: case["looks"] == "own"))  # the most telling first
    report.judge("values", not problem, values=[case["sample"] for case in cases], **problem)


def _judge_traffic(report, name, traffic, problem_of, evidence_of, *args):
    problem = first(problem_of(one, *args) for one in sorted(traffic, key=lambda one: -one.size))  # a large tensor tells most
    report.judge(name, not problem, values=[evidence_of(one, *args) for one in traffic], **problem)


def broadcast(cluster, function):
    """Check `function(x, root, group)`: the root's numbers on every rank, along a tree."""
    report = _report("broadcast", cluster, {"values": 1, "once": 1, "tree": 1})
    answers = report.experiment("collectives.ranks", "broadcast", function, seed(), remark="hang")
    if answers is not None:
        _judge_values(report, answers, "broadcast")
        traffic = verdicts.traffic(answers)
        _judge_traffic(report, "once", traffic, verdicts.once_problem, verdicts.once_evidence)
        _judge_traffic(report, "tree", traffic, verdicts.tree_problem, verdicts.tree_evidence)
    report.show()


def reduce_scatter(cluster, function):
    """Check `function(chunks, group)`: the sum of chunk r on rank r, along a ring."""
    _half("reduce-scatter", cluster, function, {"values": 2, "ring": 1})


def all_gather(cluster, function):
    """Check `function(chunks, group)`: every rank's own chunk on all ranks, along a ring."""
    _half("all-gather", cluster, function, {"values": 1, "ring": 1})


def _half(name, cluster, function, points):
    report = _report(name, cluster, points)
    answers = report.experiment("collectives.ranks", name.replace("-", "_"), function, seed(), remark="hang")
    if answers is not None:
        _judge_values(report, answers, name)
        _judge_traffic(report, "ring", verdicts.traffic(answers), _half_problem, _half_evidence, 1)
    report.show()


def _half_problem(traffic, halves):
    return verdicts.ring_problem(traffic, halves) or verdicts.bytes_problem(traffic, halves)


def _half_evidence(traffic, halves):
    return verdicts.ring_evidence(traffic, halves), verdicts.bytes_evidence(traffic, halves)


def all_reduce(cluster, function):
    """Check `function(x, group)`: the sum in place on every rank, with 2 (p - 1)/p of the bytes from each, along a ring."""
    report = _report("all-reduce", cluster, {"values": 2, "bytes": 1, "ring": 1})
    answers = report.experiment("collectives.ranks", "all_reduce", function, seed(), remark="hang")
    if answers is not None:
        _judge_values(report, answers, "all-reduce")
        traffic = verdicts.traffic(answers)
        _judge_traffic(report, "bytes", traffic, verdicts.bytes_problem, verdicts.bytes_evidence, 2)
        _judge_traffic(report, "ring", traffic, verdicts.ring_problem, verdicts.ring_evidence, 2)
    report.show()


def cost(cluster, most_bytes, rounds):
    """Check `most_bytes(way, p, n_bytes)` and `rounds(way, p)` against what the ledger sees, and for worlds that are too large to run."""
    report = _report("cost", cluster, {"bytes": 1, "rounds": 1})
    answers = report.experiment("collectives.ranks", "cost", most_bytes, rounds, seed(), remark="hang")
    if answers is not None:
        seen = {(one.p, one.way): one for one in verdicts.traffic([answer["cases"] for answer in answers])}
        asked = [case for answer in answers for case in answer["cases"] if case["me"] == 0] + answers[0]["large"]
        asked = [(case, seen.get((case["p"], case["way"]))) for case in asked]  # None: a world that is too large to run
        for name, told in (("bytes", "told bytes"), ("rounds", "told rounds")):
            some = [(case, traffic) for case, traffic in asked if case[told] is not None]
            problem = first(verdicts.predicted_problem(name, case["way"], case["p"], case["bytes"], case[told], traffic) for case, traffic in some)
            report.judge(name, not problem, values=[case[told] for case, _ in some], atol=0.5 * (name == "bytes"), **problem)
    report.show()
