"""Checks of unit 06, DistributedDataParallel: what the notebook's kernel asks of the ranks, and how it judges the answers.

Each check cell calls one of the public functions with the cluster and the names of what the learner has defined on the ranks.
The experiments run there (`ranks`, `steps`); a hang becomes FAIL lines, and the cluster heals.
"""

import itertools
from functools import partial

from manyhands.checks import seed
from manyhands.checks.ddp import verdicts
from manyhands.checks.ddp.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport, first

__all__ = ["HINTS", "broadcast", "buckets", "flight", "hooks", "no_sync", "sampler"]

_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)
_runs = itertools.count()  # numbers the experiments in which one rank waits for another


# ------------------------------------------------------------------ 1: broadcast_state

def broadcast(cluster, function):
    """Check `function(model, group)`: the state of the group's first rank, on every rank, in place."""
    report = _report("broadcast", cluster, {"parameters": 1, "buffers": 1})
    answers = report.experiment("ddp.ranks", "broadcast", function, seed(), remark="group")
    if answers is not None:
        by_group = _by_group(answers)
        for name, wanted in (("parameters", True), ("buffers", False)):
            problem = first(verdicts.state_problem(group, wanted) for group in by_group)
            values = [[case["same objects"] or not wanted, [_sample(tensor) for i, tensor in enumerate(case["after"])
                                                            if verdicts.is_plain(case, i) == wanted]]
                      for group in by_group for case in group.values()]
            report.judge(name, not problem, values=values, atol=verdicts.ATOL, **problem)
    report.show()


def _by_group(answers):
    """One dict {rank: case} for each group that the ranks have been through."""
    groups = {}
    for rank, cases in enumerate(answers):
        for case in cases:
            groups.setdefault(tuple(case["members"]), {})[rank] = case
    return list(groups.values())


def _sample(tensor):
    """A few of a tensor's numbers, as evidence; None stays None."""
    return tensor and [*tensor[:3], sum(tensor)]


# ------------------------------------------------------------------ 2: make_buckets

def buckets(cluster, function):
    """Check `function(parameters, bucket_bytes)`: which parameters travel together, and in which order."""
    report = _report("buckets", cluster, {"cut": 1})
    answers = report.experiment("ddp.ranks", "buckets", function, seed())
    if answers is not None:
        facts = answers[0]
        problem = first(verdicts.cut_problem(cut["bucket_bytes"], cut["got"], facts) for cut in facts["cuts"])
        sizes = [[sum(facts["bytes"].get(name, 0) for name in bucket) for bucket in cut["got"]] for cut in facts["cuts"]]
        report.judge("cut", not problem, values=[sizes, [cut["got"] for cut in facts["cuts"]]], **problem)
    report.show()


# ------------------------------------------------------------------ 3: launch and land

def flight(cluster, launch, land):
    """Check `launch(bucket, group)` and `land(bucket, launched, group)`: a bucket is one message, and nobody waits for it."""
    report = _report("flight", cluster, {"launch": 1, "land": 1})
    answers = report.experiment("ddp.ranks", "flight", launch, land, seed(), next(_runs), remark="group")
    if answers is not None:
        by_group = _by_group(answers)
        cases = [(rank, case) for group in by_group for rank, case in group.items()]
        problem = first(verdicts.launch_problem(rank, case) for rank, case in cases)
        report.judge("launch", not problem, values=[[case["sent"], case["blocked"]] for _, case in cases], **problem)
        problem = first(verdicts.land_problem(group) for group in by_group)
        values = [[case["got"], case["shapes"]] for _, case in cases]
        report.judge("land", not problem, values=values, atol=verdicts.ATOL, **problem)
    report.show()


# ------------------------------------------------------------------ 4: hooks

def hooks(cluster, ddp, finish):
    """Check the class `ddp` and `finish(ddp)`: the right gradients, sent while backward is still running."""
    report = _report("hooks", cluster, {"mean": 1, "overlap": 1, "unused": 1})
    answers = report.experiment("ddp.steps", "hooks", ddp, finish, seed(), next(_runs), only=("mean", "overlap"), remark="group")
    if answers is not None:
        cases = [(rank, case) for group in _by_group(answers) for rank, case in group.items()]
        problem = first(verdicts.step_problem(rank, case, step) for rank, case in cases for step in (0, 1))
        values = [_sample(gradient) for _, case in cases for step in case["steps"] for gradient in step["got"].values()]
        report.judge("mean", not problem, values=values, atol=verdicts.ATOL, **problem)
        problem = first(verdicts.overlap_problem(rank, case, step) for rank, case in cases for step in (0, 1))
        values = [[case["blocked"], [step["events"] for step in case["steps"]]] for _, case in cases]
        report.judge("overlap", not problem, values=values, **problem)
    answers = report.experiment("ddp.steps", "unused", ddp, finish, seed(), only=("unused",), remark="unused order")
    if answers is not None:
        problem = first(verdicts.unused_problem(rank, answer) for rank, answer in enumerate(answers))
        values = [gradient for answer in answers for name, gradient in answer["got"].items() if "nobody" not in name]
        report.judge("unused", not problem, values=values, atol=verdicts.ATOL, **problem)
    report.show()


# ------------------------------------------------------------------ 5: no_sync

def no_sync(cluster, ddp, finish, function):
    """Check the context manager `function(ddp)`: gradients accumulate in silence, and the next backward sends their sum."""
    report = _report("no-sync", cluster, {"silent": 1, "sum": 1})
    answers = report.experiment("ddp.steps", "accumulation", ddp, finish, function, seed())
    if answers is not None:
        problem = first(verdicts.silence_problem(rank, answer) for rank, answer in enumerate(answers))
        report.judge("silent", not problem, values=[[answer["sent"], answer["restored"]] for answer in answers], **problem)
        problem = first(verdicts.sum_problem(rank, answer, len(answers)) for rank, answer in enumerate(answers))
        report.judge("sum", not problem, values=[list(answer["got"].values()) for answer in answers], atol=verdicts.ATOL, **problem)
    report.show()


# ------------------------------------------------------------------ 6: sampler

def sampler(cluster, sampler_class):
    """Check the class `sampler_class(n, rank, world_size, seed)`: who sees which sample, in which epoch."""
    report = _report("sampler", cluster, {"padding": 1, "epochs": 1})
    answers = report.experiment("ddp.ranks", "sampler", sampler_class, seed())
    if answers is not None:
        cases = answers[0]
        problem = first(verdicts.padding_problem(case) for case in cases)
        report.judge("padding", not problem, values=[[case["lengths"], sorted(sum(case["epochs"][0], []))] for case in cases], **problem)
        problem = first(verdicts.epoch_problem(case) for case in cases)
        report.judge("epochs", not problem, values=[case["epochs"] for case in cases], **problem)
    report.show()
