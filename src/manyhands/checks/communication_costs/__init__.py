"""Checks of unit 05, what communication costs: a ping-pong on the ranks, everything else in the notebook's kernel.

Measurements are hidden: their latency, their bandwidth and their noise are drawn from the seed (`cases`), so the truth is known, and
the answers must meet it within a tolerance that the exercise states. A mistake of the learner, an exception too, becomes a FAIL line.
"""

from functools import partial

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.communication_costs import cases, verdicts
from manyhands.checks.communication_costs.words import CRITERIA, HINTS, MISTAKES
from manyhands.checks.in_kernel import ask, ask_kept, number
from manyhands.checks.on_ranks import RankReport

__all__ = ["HINTS", "all_reduce", "crossover", "fit", "fusion", "interval", "ping_pong"]


check = partial(Report, criteria=CRITERIA)
RESAMPLES = 4000  # with 400 our own band can be 10 % off, and a right band of 200 repetitions is refused
NARROW, NARROW_LEVEL = 8, 0.5  # of so many measurements a band of another level is asked for as well


def ping_pong(cluster, function):
    """Check `function(n_bytes, repeats, warm_up, peer, clock)`: its messages by the ledger, its times by a clock that is drawn."""
    with RankReport("ping-pong", cluster, CRITERIA, MISTAKES) as report:
        answers = report.on_ranks("communication_costs.ranks", "ping_pong", function, seed(), remark="hang")
        values = [[case["messages"], case["others"]] for one in answers for case in one]
        report.judge("messages", map(verdicts.messages_problem, zip(*answers)), values)
        report.judge("times", map(verdicts.times_problem, answers[0]), [case["told"] for case in answers[0]], rtol=1e-9)


def fit(function):
    """Check `function(n_bytes, times_s)` -> (latency_s, bytes_per_s) on five hidden measurements."""
    from manyhands import simulate

    with check("fit") as report:
        found = []
        for true, n_bytes, times_s in cases.measurements(seed()):
            with closed(simulate.fit):
                answer = ask_kept(function, n_bytes, times_s)
            found.append((true, n_bytes, times_s, verdicts.pair(answer)))
        for index, name in enumerate(report.asked):
            problems = (verdicts.fit_problem(index, *one) for one in found)
            report.judge(name, problems, [got[index] for *_, got in found], rtol=verdicts.FIT * 1.3)


def interval(function):
    """Check `function(n_bytes, times_s, level, fit)` -> ((low, high), (low, high)): how often it holds the truth, and how wide it is."""
    level = (0.9, 0.85)[seed() % 2]
    true, n_bytes, repeated = cases.many_measurements(seed(), verdicts.BANDS)
    with check("interval") as report:
        got, right = _bands(function, n_bytes, repeated, level)
        report.judge("covers", [verdicts.covers_problem(true, got, level)], verdicts.covers_evidence(true, got, level), rtol=0.5)
        problem, evidence = verdicts.width_problem(got, right, level), verdicts.width_evidence(got, right)
        got, right = _bands(function, n_bytes, repeated[:NARROW], NARROW_LEVEL)
        report.judge("width", [problem, verdicts.width_problem(got, right, NARROW_LEVEL, None if problem else level)], [evidence, verdicts.width_evidence(got, right)], rtol=1e-6)


def _bands(function, n_bytes, repeated, level):
    """The learner's bands and ours, [measurements, 2, (low, high)]."""
    from manyhands import simulate

    with closed(simulate.bootstrap, simulate.interval):
        answers = [ask_kept(function, n_bytes, times_s, level, simulate.fit) for times_s in repeated]
    right = [np.transpose(simulate.interval(simulate.bootstrap(n_bytes, times_s, RESAMPLES), level)) for times_s in repeated]
    return np.array([verdicts.two_pairs(answer) for answer in answers]), np.array(right)


def all_reduce(ring_s, tree_s, server_s):
    """Check the three predictions, for worlds from 1 to 1100 ranks."""
    from manyhands import simulate

    with check("all-reduce") as report:
        with closed(simulate.ring_s, simulate.tree_s, simulate.parameter_server_s):
            found = {name: [(p, n_bytes, link, number(ask(function, p, n_bytes, *link))) for p, n_bytes, link in cases.worlds(seed())]
                     for name, function in zip(report.asked, (ring_s, tree_s, server_s))}
        for name, asked in found.items():
            report.judge(name, (verdicts.cost_problem(name, *one) for one in asked), [got for *_, got in asked], rtol=1e-6)


def crossover(function):
    """Check `function(p, latency_s, bytes_per_s)`: the size above which the ring is the faster one, to 1 %."""
    from manyhands import simulate

    with check("crossover") as report:
        with closed(simulate.crossover_bytes, simulate.ring_s, simulate.tree_s):
            found = [(p, link, number(ask(function, p, *link))) for p, _, link in cases.worlds(seed(), least=2)]
        small = min(cases.half(link) for _, link, _ in found) * 1e-3
        report.judge("crossover", (verdicts.crossover_problem(*one) for one in found), [got for *_, got in found], rtol=0.02, atol=small)


def fusion(finish_s, best_bucket_bytes):
    """Check when the last gradient has arrived for several sizes of buckets, and the size that is chosen."""
    from manyhands import simulate

    with check("fusion") as report:
        steps, chosen = [], []
        for case in cases.backwards(seed()):
            all_reduce_s = partial(cases.all_reduce_s, case)
            with closed(simulate.finish_s, simulate.buckets):
                for limit in cases.limits(case):
                    steps.append((case, limit, number(ask_kept(finish_s, case.ready_s, case.n_bytes, limit, all_reduce_s))))
                chosen.append((case, number(ask_kept(best_bucket_bytes, case.ready_s, case.n_bytes, all_reduce_s))))
        report.judge("finish", (verdicts.finish_problem(*one) for one in steps), [got for *_, got in steps], rtol=1e-6)
        report.judge("best", (verdicts.best_problem(*one) for one in chosen), [verdicts.time_with(*one) for one in chosen], rtol=verdicts.BEST)
