"""Checks of unit 08, parameter servers: what the notebook's kernel asks of the ranks, and how it judges the answers.

The experiments run on the ranks (`ranks`, `train_ranks`), on one, two and three servers of five ranks. A hang ends
after a few seconds, becomes FAIL lines, and the cluster heals.
"""

from functools import partial

from manyhands.checks import seed
from manyhands.checks.on_ranks import RankReport, first
from manyhands.checks.parameter_servers import verdicts
from manyhands.checks.parameter_servers.words import HINTS, MISTAKES, TEXTS

__all__ = ["HINTS", "asynchronous", "exchange", "place", "servers", "step", "train"]

ATOL = 1e-8
_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _judge_values(report, name, answers, topic, problem_of=verdicts.value_problem):
    """Judge all cases of one topic, whoever has told them."""
    cases = [(rank, case) for rank, some in enumerate(answers) for case in some if case["topic"] == topic]
    problem = first(problem_of(rank, case, topic) for rank, case in sorted(cases, key=lambda one: one[1]["looks"] == "other"))  # the most telling first
    report.judge(name, not problem, values=[[case["got"], case.get("count", 0)] for _, case in cases], atol=ATOL, **problem)


def place(cluster, function):
    """Check `function(shapes, workers, servers, link_bytes)`: all rows on servers, and no more bytes on a server's link than it may carry."""
    report = _report("place", cluster, {"cover": 1, "limit": 2, "pieces": 1})
    answers = report.experiment("parameter_servers.ranks", "place", function, seed())
    if answers is not None:
        for name in report.points:
            problem_of, evidence_of = getattr(verdicts, f"{name}_problem"), getattr(verdicts, f"{name}_evidence")
            problem = first(map(problem_of, answers[0]))
            report.judge(name, not problem, values=[evidence_of(case) for case in answers[0]], **problem)
    report.show()


def exchange(cluster, push, take, give, pull):
    """Check the four functions of a push and a pull: what the servers take in, and what the workers have afterwards."""
    report = _report("exchange", cluster, {"push": 2, "pull": 1})
    answers = report.experiment("parameter_servers.ranks", "exchange", push, take, give, pull, seed(), remark="hang")
    if answers is not None:
        _judge_values(report, "push", answers, "push")
        _judge_values(report, "pull", answers, "pull")
    report.show()


def step(cluster, function):
    """Check `function(mine, workers, rate, decay)`: one step of gradient descent on all workers' rows, and an answer after it."""
    report = _report("step", cluster, {"update": 2, "answer": 1})
    answers = report.experiment("parameter_servers.ranks", "step", function, seed(), remark="hang")
    if answers is not None:
        _judge_values(report, "update", answers, "step")
        _judge_values(report, "answer", answers, "answer")
    report.show()


def asynchronous(cluster, function):
    """Check `function(mine, schedule, rate, decay)`: the variables that this order of pushes gives, and how stale each push was."""
    report = _report("asynchronous", cluster, {"values": 2, "staleness": 1})
    answers = report.experiment("parameter_servers.train_ranks", "asynchronous", function, seed(), remark="hang")
    if answers is not None:
        _judge_values(report, "values", answers, "asynchronous")
        told = [(rank, case) for rank, some in enumerate(answers) for case in some if "wanted" in case]
        problem = first(verdicts.stale_problem(*one) for one in told)
        report.judge("staleness", not problem, values=[case["stale"] for _, case in told], **problem)
    report.show()


def servers(cluster, function):
    """Check `function(workers, n_bytes, latency_s, bytes_per_s, limit_s)`: the fewest servers that keep the limit, or None."""
    report = _report("servers", cluster, {"number": 2})
    answers = report.experiment("parameter_servers.train_ranks", "servers", function, seed())
    if answers is not None:
        problem = first(map(verdicts.servers_problem, answers[0]))
        report.judge("number", not problem, values=[[case["got"], round(case["limit_s"], 6)] for case in answers[0]], **problem)
    report.show()


def train(cluster, place, push, pull, step):
    """Check all of them together: a network on two and on three servers, its weights, and the bytes on the servers' links."""
    report = _report("train", cluster, {"weights": 1, "limit": 2})
    answers = report.experiment("parameter_servers.train_ranks", "train", place, push, pull, step, seed(), remark="hang")
    if answers is not None:
        cases = [case for some in answers for case in some]
        problem = first(map(verdicts.link_problem, cases))
        placed = {"mistake": MISTAKES["place first"]} if any(case["bytes"] is None for case in cases) else None
        wrong = placed or first(verdicts.value_problem(case["rank"], case, "train") for case in cases)
        of_workers = [case["got"] for case in cases if not case["server"]]  # what a server keeps depends on the placement
        report.judge("weights", not wrong, values=of_workers, atol=ATOL, **wrong)
        report.judge("limit", not problem, values=[verdicts.link_evidence(case) for case in cases], **problem)
    report.show()
