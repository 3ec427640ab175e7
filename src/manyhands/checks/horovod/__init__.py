"""Checks of unit 10, Horovod: what the notebook's kernel asks of the ranks, and how it judges the answers.

The experiments run on the ranks (`ranks`), in a world of all ranks and in one of three; a hang becomes FAIL lines, and the cluster heals.
"""

import random
from functools import partial

from manyhands.checks import seed
from manyhands.checks.horovod import verdicts
from manyhands.checks.horovod.words import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import LIMIT_S, RankReport, _on_rank

__all__ = ["HINTS", "diagnose", "epoch", "finish", "fit", "resume"]

PATIENCE_S = 6  # Horovod's messages wait for the next look of its own threads, on every rank: on a busy machine that takes a while
check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES, patience_s=PATIENCE_S)


def _world(cluster, size=None):
    """Bring Horovod to the ranks below `size` (None: to all), if it is not there already."""
    for step in ("leave", "enter"):
        there = [answer["value"] for answer in cluster.run(_on_rank, "horovod.ranks", step, size, patience_s=PATIENCE_S, limit_s=LIMIT_S)]
        if step == "leave" and all(there[:size]):
            return


def _in_both_worlds(report, experiment, function):
    """The answers of the members, from a world of all ranks and from one of three."""
    found = []
    try:
        for size in (None, 3):
            _world(report.cluster, size)
            answers = report.on_ranks("horovod.ranks", experiment, function, seed(), remark="behind an if")
            found.append([answer for answer in answers if answer is not None])
    finally:
        _world(report.cluster)
    return found


def diagnose(cluster, function):
    """Check `function(symptoms)`: the missing edit of real trainings, named from their numbers."""
    draw = random.Random(seed())
    missing = list(verdicts.ANSWERS)
    draw.shuffle(missing)
    with check("diagnose", cluster) as report:
        _world(cluster)
        symptoms, *_ = report.on_ranks("horovod.ranks", "symptoms", missing, seed())
        said = verdicts.ask(function, symptoms)
        commonest_first = sorted(zip(missing, symptoms, said), key=lambda case: list(verdicts.ANSWERS).index(case[0]))
        report.judge("named", (verdicts.diagnosis_problem(*case) for case in commonest_first), said)


def resume(cluster, function):
    """Check `function(model, optimiser, path)`: weights, buffers, momenta, rate and step of a checkpoint that rank 0 alone has."""
    with check("resume", cluster) as report:
        _world(cluster)
        cases = list(enumerate(report.on_ranks("horovod.ranks", "resumed", function, seed(), remark="behind an if")))
        for name, keys in {"weights": ["state"], "optimiser": ["momenta", "settings"], "step": ["said"]}.items():
            problems = (verdicts.RESUMED[name](rank, case) for rank, case in cases)
            report.judge(name, problems, [[case[key] for key in keys] for _, case in cases], atol=verdicts.ATOL)


def fit(cluster, function):
    """Check `function(model, x, y, rate, steps)`: the weights of one process on the rows of all ranks, in worlds of 4 and 3."""
    with check("fit", cluster) as report:
        for name, answers in zip(("four", "three"), _in_both_worlds(report, "fitted", function)):
            problems = (verdicts.fit_problem(rank, case) for rank, case in enumerate(answers))
            report.judge(name, problems, [case["got"] for case in answers], atol=verdicts.ATOL)


def epoch(cluster, function):
    """Check `function(n, rows_per_rank, epoch, base_rate)`: each row at most once, the same steps on all ranks, the rate."""
    with check("epoch", cluster) as report:
        cases = [verdicts.joined(case) for answers in _in_both_worlds(report, "epochs", function) for case in zip(*answers)]
        for name, values in {"once": verdicts.once_values, "steps": verdicts.steps_values, "rate": lambda case: case["rates"]}.items():
            report.judge(name, map(verdicts.EPOCH[name], cases), [values(case) for case in cases], atol=verdicts.ATOL)


def finish(cluster, function):
    """Check `function(model, loss, path)`: one file, written by rank 0, and the mean loss in it and on all ranks."""
    with check("finish", cluster) as report:
        worlds = _in_both_worlds(report, "finished", function)
        values = [[[case["wrote"], case["loss"], case["weights"]] for case in answers] for answers in worlds]
        report.judge("file", map(verdicts.file_problem, worlds), values, atol=verdicts.LOSS_ATOL)
        said = [(rank, answers[rank], answers) for answers in worlds for rank in reversed(range(len(answers)))]  # rank 0 last: its own says least
        values = [[case["said"] for case in answers] for answers in worlds]
        report.judge("loss", (verdicts.loss_problem(*one) for one in said), values, atol=verdicts.LOSS_ATOL)
