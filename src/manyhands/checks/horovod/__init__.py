"""Checks of unit 10, Horovod: what the notebook's kernel asks of the ranks, and how it judges the answers.

The experiments run on the ranks (`ranks`), in a world of all ranks and in one of three; a hang becomes FAIL lines, and the cluster heals.
"""

import random
from functools import partial

from manyhands.checks import seed
from manyhands.checks.horovod import verdicts
from manyhands.checks.horovod.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import LIMIT_S, RankReport, _on_rank, first

__all__ = ["HINTS", "diagnose", "epoch", "finish", "fit", "resume"]

PATIENCE_S = 6  # Horovod's messages wait for the next look of its own threads, on every rank: on a busy machine that takes a while
_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _world(cluster, size=None):
    """Bring Horovod to the ranks below `size` (None: to all), if it is not there already."""
    for step in ("leave", "enter"):
        there = [answer["value"] for answer in cluster.run(_on_rank, "horovod.ranks", step, size, patience_s=PATIENCE_S, limit_s=LIMIT_S)]
        if step == "leave" and all(there[:size]):
            return


def _in_both_worlds(report, experiment, function, only=None):
    """The answers of the members, from a world of all ranks and from one of three; None after FAIL lines."""
    found = []
    try:
        for size in (None, 3):
            _world(report.cluster, size)
            answers = report.experiment("horovod.ranks", experiment, function, seed(), only=only, remark="behind an if", patience_s=PATIENCE_S)
            if answers is None:
                return None
            found.append([answer for answer in answers if answer is not None])
    finally:
        _world(report.cluster)
    return found


def diagnose(cluster, function):
    """Check `function(symptoms)`: the missing edit of real trainings, named from their numbers."""
    report = _report("diagnose", cluster, {"named": 2})
    draw = random.Random(seed())
    missing = list(verdicts.EDITS) + draw.choices(verdicts.EDITS, k=2)
    draw.shuffle(missing)
    _world(cluster)
    answers = report.experiment("horovod.ranks", "symptoms", missing, seed(), patience_s=PATIENCE_S)
    if answers is not None:
        said, trouble = verdicts.ask(function, answers[0])
        if trouble:
            report.judge("named", False, mistake=trouble)
        else:
            problem = first(map(verdicts.diagnosis_problem, missing, answers[0], said))
            report.judge("named", not problem, values=said, **problem)
    report.show()


def resume(cluster, function):
    """Check `function(model, optimiser, path)`: weights, buffers, momenta, rate and step of a checkpoint that rank 0 alone has."""
    report = _report("resume", cluster, {"weights": 1, "optimiser": 1, "step": 1})
    _world(cluster)
    answers = report.experiment("horovod.ranks", "resumed", function, seed(), remark="behind an if", patience_s=PATIENCE_S)
    if answers is not None:
        cases = list(enumerate(answers))
        for name, keys in {"weights": ["state"], "optimiser": ["momenta", "rates"], "step": ["said"]}.items():
            problem = first(verdicts.RESUMED[name](rank, case) for rank, case in cases)
            report.judge(name, not problem, values=[[case[key] for key in keys] for _, case in cases], atol=verdicts.ATOL, **problem)
    report.show()


def fit(cluster, function):
    """Check `function(model, x, y, rate, steps)`: the weights of one process on the rows of all ranks, in worlds of 4 and 3."""
    report = _report("fit", cluster, {"four": 2, "three": 1})
    worlds = _in_both_worlds(report, "fitted", function)
    if worlds is not None:
        for name, answers in zip(("four", "three"), worlds):
            problem = first(verdicts.fit_problem(rank, case) for rank, case in enumerate(answers))
            report.judge(name, not problem, values=[case["got"] for case in answers], atol=verdicts.ATOL, **problem)
    report.show()


def epoch(cluster, function):
    """Check `function(n, rows_per_rank, epoch, base_rate)`: each row at most once, the same steps on all ranks, the rate."""
    report = _report("epoch", cluster, {"once": 1, "steps": 1, "rate": 1})
    worlds = _in_both_worlds(report, "epochs", function)
    if worlds is not None:
        cases = [verdicts.joined(case) for answers in worlds for case in zip(*answers)]
        for name, values in {"once": verdicts.once_values, "steps": verdicts.steps_values, "rate": lambda case: case["rates"]}.items():
            problem = first(verdicts.EPOCH[name](case) for case in cases)
            report.judge(name, not problem, values=[values(case) for case in cases], atol=verdicts.ATOL, **problem)
    report.show()


def finish(cluster, function):
    """Check `function(model, loss, path)`: one file, written by rank 0, and the mean loss in it and on all ranks."""
    report = _report("finish", cluster, {"file": 1, "loss": 1})
    worlds = _in_both_worlds(report, "finished", function)
    if worlds is not None:
        problem = first(map(verdicts.file_problem, worlds))
        values = [[[case["wrote"], case["loss"], case["weights"]] for case in answers] for answers in worlds]
        report.judge("file", not problem, values=values, atol=verdicts.LOSS_ATOL, **problem)
        problem = first(verdicts.loss_problem(rank, answers[rank]) for answers in worlds for rank in reversed(range(len(answers))))  # rank 0 last: its own says least
        report.judge("loss", not problem, values=[[case["said"] for case in answers] for answers in worlds], atol=verdicts.LOSS_ATOL, **problem)
    report.show()
