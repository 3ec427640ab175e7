"""Checks of unit 09, asynchrony and staleness: the barrier on the server's rank, everything else in the notebook's kernel.

Runs are replayed from schedules that the seed draws (`cases`), in whole numbers: no answer depends on how long anything takes.
"""

from functools import partial

import numpy as np

from manyhands.checks import seed
from manyhands.checks.in_kernel import call, number
from manyhands.checks.on_ranks import RankReport, first
from manyhands.checks.staleness import cases, verdicts
from manyhands.checks.staleness.words import HINTS, MISTAKES, TEXTS

__all__ = ["HINTS", "backups", "barrier", "rate", "replay", "versions"]

_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _judge(report, name, problems, values, **tolerance):
    """Add a criterion; `problems` are details of FAIL lines, or None: the first one is shown."""
    problem = first(problems)
    report.judge(name, not problem, values=values, **tolerance, **problem)


def _answers(report, function, questions):
    """What the learner's function returns for each; None after FAIL lines for all criteria, if it raises."""
    found = []
    for question in questions:
        answer, error = call(function, *question)
        if error:
            for name in report.points:
                report.judge(name, False, mistake=error)
            return None
        found.append(answer)
    return found


def versions(function):
    """Check `function(log)` -> (versions, staleness) on three logs."""
    report, logs = _report("versions", None, {"versions": 1, "staleness": 1}), cases.logs(seed())
    answers = _answers(report, function, [(list(log),) for log in logs])
    if answers is not None:
        found = [verdicts.two_lists(answer) for answer in answers]
        _judge(report, "versions", [verdicts.versions_problem(log, got) for log, (got, _) in zip(logs, found)], [got for got, _ in found])
        _judge(report, "staleness", [verdicts.staleness_problem(log, got) for log, (_, got) in zip(logs, found)], [got for _, got in found])
    report.show()


def replay(function):
    """Check `function(w, rate, versions, gradient)` -> the weights of all versions: without delay, and with schedules that are drawn."""
    report = _report("replay", None, {"fresh": 1, "stale": 2})
    runs = {name: cases.runs(seed(), name == "stale") for name in report.points}
    answers = _answers(report, function, [(run.w.copy(), run.rate, list(run.versions), partial(cases.gradient, run)) for few in runs.values() for run in few])
    if answers is not None:
        found = iter([verdicts.array(answer) for answer in answers])
        for name, few in runs.items():
            got = [next(found) for _ in few]
            _judge(report, name, map(verdicts.history_problem, few, got), got)
    report.show()


def rate(function):
    """Check `function(curvatures, delay)`: one curvature at five delays, and several at three, to a thousandth."""
    report = _report("rate", None, {"delay": 2, "curvatures": 1})
    asked = {name: cases.curvatures(seed(), name == "curvatures") for name in report.points}
    answers = _answers(report, function, [(list(one), delay) for few in asked.values() for one, delay in few])
    if answers is not None:
        found = iter([number(answer) for answer in answers])
        for name, few in asked.items():
            got = [next(found) for _ in few]
            _judge(report, name, [verdicts.rate_problem(*one, mine) for one, mine in zip(few, got)], got, rtol=1.5 * verdicts.RATE)
    report.show()


def barrier(cluster, name):
    """Check the learner's class `name(workers, bound)` on rank 0: in lockstep, with bounds, and with workers that leave."""
    report = _report("barrier", cluster, {"lockstep": 1, "bound": 2, "leave": 2})
    answers = report.experiment("staleness.ranks", "barrier", name, seed())
    if answers is not None:
        for criterion, runs in answers[0].items():
            _judge(report, criterion, map(verdicts.barrier_problem, runs), [run["answers"] for run in runs])
    report.show()


def backups(step_s, best_b, cheapest_b):
    """Check the expected time of a step, to 1 %, and the two choices: each may cost at most 1 % more than the best."""
    report = _report("backups", None, {"step": 2, "fixed": 2, "rented": 1})
    waits, fixed, rented = cases.waits(seed()), cases.choices(seed(), "fixed"), cases.choices(seed(), "rented")
    waited = _answers(report, step_s, [(n, b, list(times)) for n, b, times in waits])
    chosen = waited and _answers(report, best_b, [(case.size, list(case.times), cases.rule(case)) for case, _ in fixed])
    cheap = chosen and _answers(report, cheapest_b, [(case.size, list(case.times)) for case, _ in rented])
    if cheap:
        got = [number(answer) for answer in waited]
        _judge(report, "step", [verdicts.step_problem(*one, mine) for one, mine in zip(waits, got)], got, rtol=1.5 * verdicts.WAIT)
        for kind, few, answers in (("fixed", fixed, chosen), ("rented", rented, cheap)):
            got = [number(answer) for answer in answers]
            values = [verdicts.cost_with(costs, mine) for (_, costs), mine in zip(few, got)]
            _judge(report, kind, [verdicts.choice_problem(kind, *one, mine) for one, mine in zip(few, got)], np.nan_to_num(values), rtol=verdicts.CHOICE)
    report.show()
