"""Checks of unit 04, collectives, with what the notebook's kernel asks of the ranks and how it
judges the answers.

The experiments run on the ranks (`ranks`), in groups of 5, 3 and 2 of them, and each call runs
under a ledger. A hang ends after a few seconds and becomes a FAIL line, and the cluster heals.
"""

from functools import partial

from manyhands.checks import seed
from manyhands.checks.collectives import verdicts
from manyhands.checks.collectives.words import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport

__all__ = ["HINTS", "all_gather", "all_reduce", "broadcast", "cost", "halving", "reduce_scatter"]

check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)
# where the learner's own code has cut x
CUT = MISTAKES | {"known": {**MISTAKES["known"], "index out of range": MISTAKES["fewer pieces"]}}
# where a rank looks for a partner
PARTNERS = MISTAKES | {"known": {**MISTAKES["known"], "index out of range": MISTAKES["partner"]}}


def _judge_values(report, answers, topic):
    cases = [case for answer in answers for case in answer]
    telling = sorted(cases, key=lambda case: case["looks"] == "own")  # the most telling first
    report.judge(
        "values",
        (verdicts.value_problem(case, topic) for case in telling),
        [case["sample"] for case in cases],
    )


def _judge_traffic(report, name, traffic, problem_of, evidence_of, *args):
    telling = sorted(traffic, key=lambda one: -one.size)  # a large tensor tells most
    report.judge(
        name,
        (problem_of(one, *args) for one in telling),
        [evidence_of(one, *args) for one in traffic],
    )


def broadcast(cluster, function):
    """Check that `function(x, root, group)` puts the root's numbers on every rank, along a tree."""
    with check("broadcast", cluster) as report:
        answers = report.on_ranks("collectives.ranks", "broadcast", function, seed(), remark="hang")
        _judge_values(report, answers, "broadcast")
        traffic = verdicts.traffic(answers)
        _judge_traffic(report, "once", traffic, verdicts.once_problem, verdicts.once_evidence)
        _judge_traffic(report, "tree", traffic, verdicts.tree_problem, verdicts.tree_evidence)


def reduce_scatter(cluster, function):
    """Check that `function(chunks, group)` leaves the sum of chunk r on rank r, along a ring."""
    _half("reduce-scatter", cluster, function)


def all_gather(cluster, function):
    """Check that `function(chunks, group)` puts every rank's own chunk on all ranks, along a
    ring.
    """
    _half("all-gather", cluster, function)


def _half(name, cluster, function):
    with check(name, cluster) as report:
        answers = report.on_ranks(
            "collectives.ranks", name.replace("-", "_"), function, seed(), remark="hang"
        )
        _judge_values(report, answers, name)
        _judge_traffic(report, "ring", verdicts.traffic(answers), _half_problem, _half_evidence, 1)


def _half_problem(traffic, halves):
    return verdicts.ring_problem(traffic, halves) or verdicts.bytes_problem(traffic, halves)


def _half_evidence(traffic, halves):
    return verdicts.ring_evidence(traffic, halves), verdicts.bytes_evidence(traffic, halves)


def all_reduce(cluster, function):
    """Check that `function(x, group)` leaves the sum in place on every rank, with 2 (p - 1)/p of
    the bytes from each, along a ring.
    """
    with check("all-reduce", cluster, mistakes=CUT) as report:
        answers = report.on_ranks(
            "collectives.ranks", "all_reduce", function, seed(), remark="hang"
        )
        _judge_values(report, answers, "all-reduce")
        traffic = verdicts.traffic(answers)
        _judge_traffic(report, "bytes", traffic, verdicts.bytes_problem, verdicts.bytes_evidence, 2)
        _judge_traffic(report, "ring", traffic, verdicts.ring_problem, verdicts.ring_evidence, 2)


def halving(cluster, function):
    """Check that `function(x, group)` leaves the sum in place on every rank of 4 and of 2, by
    halving and doubling, with no more bytes than that needs.
    """
    with check("halving", cluster, mistakes=PARTNERS) as report:
        answers = report.on_ranks("collectives.ranks", "halving", function, seed(), remark="hang")
        _judge_values(report, answers, "halving")
        _judge_traffic(
            report,
            "bytes",
            verdicts.traffic(answers),
            verdicts.halving_problem,
            verdicts.halving_evidence,
        )


def cost(cluster, most_bytes, rounds):
    """Check `most_bytes(way, p, n_bytes)` and `rounds(way, p)` against what the ledger counts, and
    against formulas for worlds that are too large to run.
    """
    with check("cost", cluster) as report:
        answers = report.on_ranks(
            "collectives.ranks", "cost", most_bytes, rounds, seed(), remark="hang"
        )
        seen = {
            (one.p, one.way): one
            for one in verdicts.traffic([answer["cases"] for answer in answers])
        }
        asked = [
            case for answer in answers for case in answer["cases"] if case["me"] == 0
        ] + answers[0]["large"]
        # None: a world that is too large to run
        asked = [(case, seen.get((case["p"], case["way"]))) for case in asked]
        for name, told in (("bytes", "told bytes"), ("rounds", "told rounds")):
            some = [(case, traffic) for case, traffic in asked if case[told] is not None]
            problems = (
                verdicts.predicted_problem(
                    name, case["way"], case["p"], case["bytes"], case[told], traffic
                )
                for case, traffic in some
            )
            report.judge(
                name, problems, [case[told] for case, _ in some], atol=0.5 * (name == "bytes")
            )
