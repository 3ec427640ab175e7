"""Checks of unit 05, what communication costs: a ping-pong on the ranks, everything else in the notebook's kernel.

Measurements are hidden: their latency, their bandwidth and their noise are drawn from the seed (`cases`), so the truth is known, and
the answers must meet it within a tolerance that the exercise states. A mistake of the learner, an exception too, becomes a FAIL line.
"""

from functools import partial

import numpy as np

from manyhands.checks import seed
from manyhands.checks.communication_costs import cases, verdicts
from manyhands.checks.communication_costs.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.in_kernel import KernelReport, call, number
from manyhands.checks.on_ranks import RankReport

__all__ = ["HINTS", "all_reduce", "crossover", "fit", "fusion", "interval", "ping_pong"]


_report = partial(KernelReport, texts=TEXTS)


def ping_pong(cluster, function):
    """Check `function(n_bytes, repeats, warm_up, peer, clock)`: its messages by the ledger, its times by a clock that is drawn."""
    report = RankReport("ping-pong", cluster, {"messages": 1, "times": 2}, TEXTS, MISTAKES)
    answers = report.experiment("communication_costs.ranks", "ping_pong", function, seed(), remark="hang")
    if answers is not None:
        problem = next(filter(None, map(verdicts.messages_problem, zip(*answers))), {})
        report.judge("messages", not problem, values=[[case["messages"], case["others"]] for one in answers for case in one], **problem)
        problem = next(filter(None, (verdicts.times_problem(case) for case in answers[0])), {})
        report.judge("times", not problem, values=[case["told"] for case in answers[0]], rtol=1e-9, **problem)
    report.show()


def fit(function):
    """Check `function(n_bytes, times_s)` -> (latency_s, bytes_per_s) on five hidden measurements."""
    report, found = _report("fit", latency=2, bandwidth=2), []
    for true, n_bytes, times_s in cases.measurements(seed()):
        answer, error = call(function, list(n_bytes), [list(one) for one in times_s])
        if error:
            return report.fail_all(error)
        found.append((true, n_bytes, times_s, verdicts.pair(answer)))
    for index, name in enumerate(report.points):
        problems = [verdicts.fit_problem(index, *one) for one in found]
        report.judge(name, problems, [got[index] for *_, got in found], rtol=verdicts.FIT * 1.3)
    report.show()


def interval(function):
    """Check `function(n_bytes, times_s, level, fit)` -> ((low, high), (low, high)): how often it holds the truth, and how wide it is."""
    from manyhands import simulate

    report, level = _report("interval", covers=1, width=1), (0.9, 0.85)[seed() % 2]
    true, n_bytes, repeated = cases.many_measurements(seed(), verdicts.BANDS)
    got, right = [], []
    for times_s in repeated:
        answer, error = call(function, list(n_bytes), [list(one) for one in times_s], level, simulate.fit)
        if error:
            return report.fail_all(error)
        got.append(verdicts.two_pairs(answer))
        right.append(np.transpose(simulate.interval(simulate.bootstrap(n_bytes, times_s), level)))
    got, right = np.array(got), np.array(right)
    report.judge("covers", [verdicts.covers_problem(true, got, level)], verdicts.covers_evidence(true, got, level), rtol=0.5)
    report.judge("width", [verdicts.width_problem(got, right, level)], verdicts.width_evidence(got, right), rtol=1e-6)
    report.show()


def all_reduce(ring_s, tree_s, server_s):
    """Check the three predictions, for worlds from 1 to 1100 ranks."""
    report, found = _report("all-reduce", ring=1, tree=1, server=1), {}
    for name, function in zip(report.points, (ring_s, tree_s, server_s)):
        found[name] = []
        for p, n_bytes, link in cases.worlds(seed()):
            answer, error = call(function, p, n_bytes, *link)
            if error:
                return report.fail_all(error)
            found[name].append((p, n_bytes, link, number(answer)))
    for name, asked in found.items():
        report.judge(name, [verdicts.cost_problem(name, *one) for one in asked], [got for *_, got in asked], rtol=1e-6)
    report.show()


def crossover(function):
    """Check `function(p, latency_s, bytes_per_s)`: the size above which the ring is the faster one, to 1 %."""
    report, found = _report("crossover", crossover=2), []
    for p, _, link in cases.worlds(seed(), least=2):
        answer, error = call(function, p, *link)
        if error:
            return report.fail_all(error)
        found.append((p, link, number(answer)))
    small = [min(cases.half(link) for _, link, _ in found) * 1e-3]
    report.judge("crossover", [verdicts.crossover_problem(*one) for one in found], [got for *_, got in found], rtol=0.02, atol=small[0])
    report.show()


def fusion(finish_s, best_bucket_bytes):
    """Check when the last gradient has arrived for several sizes of buckets, and the size that is chosen."""
    report, steps, chosen = _report("fusion", finish=2, best=1), [], []
    for case in cases.backwards(seed()):
        all_reduce_s = partial(cases.all_reduce_s, case)
        for limit in cases.limits(case):
            answer, error = call(finish_s, list(case.ready_s), list(case.n_bytes), limit, all_reduce_s)
            if error:
                return report.fail_all(error)
            steps.append((case, limit, number(answer)))
        answer, error = call(best_bucket_bytes, list(case.ready_s), list(case.n_bytes), all_reduce_s)
        if error:
            return report.fail_all(error)
        chosen.append((case, number(answer)))
    report.judge("finish", [verdicts.finish_problem(*one) for one in steps], [got for *_, got in steps], rtol=1e-6)
    report.judge("best", [verdicts.best_problem(*one) for one in chosen], [verdicts.time_with(*one) for one in chosen], rtol=verdicts.BEST)
    report.show()
