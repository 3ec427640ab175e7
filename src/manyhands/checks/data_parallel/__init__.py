"""Checks of unit 01, data parallelism by hand: what the notebook's kernel asks of the ranks, and how it judges the answers.

The experiments run on the ranks (`ranks`); a hang becomes FAIL lines, and the cluster heals.
"""

from functools import partial

from manyhands.checks import seed
from manyhands.checks.data_parallel import verdicts
from manyhands.checks.data_parallel.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport, first

__all__ = ["HINTS", "gradients", "rows", "share", "step"]

_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _cases(answers):
    """All cases of all ranks, as (rank, case)."""
    return [(rank, case) for rank, cases in enumerate(answers) for case in cases]


def rows(cluster, function):
    """Check `function(n, rank, world_size)`: one slice for each rank, none twice, none forgotten, and all of about the same size."""
    report = _report("rows", cluster, {"cover": 1, "even": 1})
    answers = report.experiment("data_parallel.ranks", "rows", function, seed())
    if answers is not None:
        cases = answers[0]
        report.judge("cover", not (problem := first(map(verdicts.cover_problem, cases))), values=[case["got"] for case in cases], **problem)
        sizes = [[len(rows) for rows in case["got"]] for case in cases]
        report.judge("even", not (problem := first(map(verdicts.even_problem, cases))), values=sizes, **problem)
    report.show()


def gradients(cluster, function):
    """Check `function(model, group)`: sums of gradients, tied, frozen and missing ones, and what was sent for them."""
    report = _report("gradients", cluster, {"sum": 2, "missing": 1, "bytes": 1})
    answers = report.experiment("data_parallel.ranks", "gradients", function, seed(), only=("sum", "bytes"), remark="group")
    if answers is not None:
        _judge_gradients(report, "sum", answers, verdicts.gradient_problem)
        moved = verdicts.sent_by_group(answers)
        problem = first(verdicts.bytes_problem(*one) for one in moved)
        report.judge("bytes", not problem, values=[verdicts.bytes_evidence(*one) for one in moved], atol=0.5, **problem)
    answers = report.experiment("data_parallel.ranks", "missing", function, seed(), only=("missing",), remark="missing")
    if answers is not None:
        _judge_gradients(report, "missing", answers, verdicts.missing_problem)
    report.show()


def _judge_gradients(report, name, answers, problem_of):
    cases = _cases(answers)
    problem = first(problem_of(rank, case) for rank, case in cases)
    values = [[case["frozen"], [one["got"] for one in case["gradients"].values()]] for _, case in cases]
    report.judge(name, not problem, values=values, atol=verdicts.ATOL, **problem)


def share(cluster, function):
    """Check `function(model, x, y, n, decay, world_size)`: what all ranks return adds up to the objective of the whole batch."""
    report = _report("share", cluster, {"losses": 2, "decay": 2})
    answers = report.experiment("data_parallel.ranks", "shares", function, seed())
    if answers is not None:
        for name in ("losses", "decay"):
            cases = [case for case in answers[0] if bool(case["decay"]) == (name == "decay")]
            problem = first(map(verdicts.share_problem, cases))
            report.judge(name, not problem, values=[[case["value"], case["gradient"]] for case in cases], atol=verdicts.ATOL, **problem)
    report.show()


def step(cluster, function):
    """Check `function(model, x, y, rate, decay, group)`: the weights of one process, and its objectives."""
    report = _report("step", cluster, {"weights": 2, "objective": 1})
    answers = report.experiment("data_parallel.ranks", "steps", function, seed(), remark="group")
    if answers is not None:
        cases = _cases(answers)
        problem = first(verdicts.weights_problem(rank, case) for rank, case in cases)
        report.judge("weights", not problem, values=[[case["got"], case["frozen"]] for _, case in cases], atol=verdicts.ATOL, **problem)
        problem = first(verdicts.objective_problem(rank, case) for rank, case in cases)
        report.judge("objective", not problem, values=[case["said"] for _, case in cases], atol=verdicts.ATOL, **problem)
    report.show()
