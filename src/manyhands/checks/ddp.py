"""Checks of unit 06, DistributedDataParallel: what the notebook's kernel asks of the ranks, and how it judges the answers.

Each check cell calls one of the public functions with the cluster and the names of what the learner has defined on the ranks.
The experiments run there (`ddp_ranks`, `ddp_steps`); a hang ends after PATIENCE_S, becomes a FAIL line, and the cluster heals.
"""

import itertools

from manyhands.checks import Report, ddp_verdicts as verdicts, seed
from manyhands.checks.ddp_words import HINTS, MISTAKES, TEXTS

__all__ = ["HINTS", "broadcast", "buckets", "flight", "hooks", "no_sync", "sampler"]

PATIENCE_S, LIMIT_S = 3, 60
_runs = itertools.count()  # numbers the experiments in which one rank waits for another


def _on_rank(module, experiment, *args):
    """Runs on a rank. A stub that is not written yet is told as such; any other exception is the cluster's to report."""
    import traceback
    from importlib import import_module

    from manyhands.checks.ddp_ranks import Unwritten

    try:
        return {"value": getattr(import_module("manyhands.checks." + module), experiment)(*args)}
    except Unwritten as error:
        return {"unwritten": str(error)}
    except NotImplementedError as error:
        return {"unwritten": traceback.extract_tb(error.__traceback__)[-1].name}


class _Check(Report):
    """A report whose criteria can all fail at once, when the experiment did not come to an end."""

    def __init__(self, name, cluster, points):
        super().__init__(name)
        self.cluster, self.points = cluster, points

    def experiment(self, module, name, *args, only=None, remark=None):
        """Run it on all ranks; the values by rank, or None after a FAIL line for each criterion (or for `only`).

        `remark` names a mistake that is likely when ranks wait for each other in this experiment.
        """
        from manyhands.cluster import Fault

        try:
            answers = self.cluster.run(_on_rank, module, name, *args, patience_s=PATIENCE_S, limit_s=LIMIT_S)
        except Fault as fault:
            return self._all_fail(only, _of_fault(fault, remark), rank=min(fault.culprits, default=None))
        unwritten = [answer["unwritten"] for answer in answers if "unwritten" in answer]
        if unwritten:
            return self._all_fail(only, MISTAKES["unwritten"].format(name=unwritten[0]))
        return [answer["value"] for answer in answers]

    def _all_fail(self, only, mistake, rank=None):
        for name in only or self.points:
            self.judge(name, False, rank=rank, mistake=mistake)
        return None

    def judge(self, name, passed, **details):
        return self.criterion(name, points=self.points[name], text=TEXTS[self.name, name], passed=passed, **details)


def _of_fault(fault, remark):
    """What of a fault's report helps here, the most telling first: long texts are cut. The cluster has shown the whole of it."""
    lines = [line.strip() for line in fault.text.splitlines() if line.strip()]
    known = next((text for fragment, text in MISTAKES["known"].items() if fragment in fault.text), None)
    waiting = fault.kind in ("hang", "mismatch")
    kept = [lines[0], known or (MISTAKES[remark] if remark and waiting else None),
            *[line for line in lines if line.startswith(("Who waits", "Likely cause"))][:2],
            None if waiting else next((line for line in lines[1:] if " raised " in line), None)]
    return "\n".join(line for line in kept if line)


def _first(problems):
    """The details of the first problem, as keyword arguments of `judge`; none if all is well."""
    return next((problem for problem in problems if problem), {})


# ------------------------------------------------------------------ 1: broadcast_state

def broadcast(cluster, function):
    """Check `function(model, group)`: the state of the group's first rank, on every rank, in place."""
    report = _Check("broadcast", cluster, {"parameters": 1, "buffers": 1})
    answers = report.experiment("ddp_ranks", "broadcast", function, _seed(), remark="group")
    if answers is not None:
        by_group = _by_group(answers)
        for name, wanted in (("parameters", True), ("buffers", False)):
            problem = _first(verdicts.state_problem(group, wanted) for group in by_group)
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
    report = _Check("buckets", cluster, {"cut": 1})
    answers = report.experiment("ddp_ranks", "buckets", function, _seed())
    if answers is not None:
        facts = answers[0]
        problem = _first(verdicts.cut_problem(cut["bucket_bytes"], cut["got"], facts) for cut in facts["cuts"])
        sizes = [[sum(facts["bytes"].get(name, 0) for name in bucket) for bucket in cut["got"]] for cut in facts["cuts"]]
        report.judge("cut", not problem, values=[sizes, [cut["got"] for cut in facts["cuts"]]], **problem)
    report.show()


# ------------------------------------------------------------------ 3: launch and land

def flight(cluster, launch, land):
    """Check `launch(bucket, group)` and `land(bucket, launched, group)`: a bucket is one message, and nobody waits for it."""
    report = _Check("flight", cluster, {"launch": 1, "land": 1})
    answers = report.experiment("ddp_ranks", "flight", launch, land, _seed(), next(_runs), remark="group")
    if answers is not None:
        by_group = _by_group(answers)
        cases = [(rank, case) for group in by_group for rank, case in group.items()]
        problem = _first(verdicts.launch_problem(rank, case) for rank, case in cases)
        report.judge("launch", not problem, values=[[case["sent"], case["blocked"]] for _, case in cases], **problem)
        problem = _first(verdicts.land_problem(group) for group in by_group)
        values = [[case["got"], case["shapes"]] for _, case in cases]
        report.judge("land", not problem, values=values, atol=verdicts.ATOL, **problem)
    report.show()


# ------------------------------------------------------------------ 4: hooks

def hooks(cluster, ddp, finish):
    """Check the class `ddp` and `finish(ddp)`: the right gradients, sent while backward is still running."""
    report = _Check("hooks", cluster, {"mean": 1, "overlap": 1, "unused": 1})
    answers = report.experiment("ddp_steps", "hooks", ddp, finish, _seed(), next(_runs), only=("mean", "overlap"), remark="group")
    if answers is not None:
        cases = [(rank, case) for group in _by_group(answers) for rank, case in group.items()]
        problem = _first(verdicts.step_problem(rank, case, step) for rank, case in cases for step in (0, 1))
        values = [_sample(gradient) for _, case in cases for step in case["steps"] for gradient in step["got"].values()]
        report.judge("mean", not problem, values=values, atol=verdicts.ATOL, **problem)
        problem = _first(verdicts.overlap_problem(rank, case, step) for rank, case in cases for step in (0, 1))
        values = [[case["blocked"], [step["events"] for step in case["steps"]]] for _, case in cases]
        report.judge("overlap", not problem, values=values, **problem)
    answers = report.experiment("ddp_steps", "unused", ddp, finish, _seed(), only=("unused",), remark="unused order")
    if answers is not None:
        problem = _first(verdicts.unused_problem(rank, answer) for rank, answer in enumerate(answers))
        values = [gradient for answer in answers for name, gradient in answer["got"].items() if "nobody" not in name]
        report.judge("unused", not problem, values=values, atol=verdicts.ATOL, **problem)
    report.show()


# ------------------------------------------------------------------ 5: no_sync

def no_sync(cluster, ddp, finish, function):
    """Check the context manager `function(ddp)`: gradients accumulate in silence, and the next backward sends their sum."""
    report = _Check("no-sync", cluster, {"silent": 1, "sum": 1})
    answers = report.experiment("ddp_steps", "accumulation", ddp, finish, function, _seed())
    if answers is not None:
        problem = _first(verdicts.silence_problem(rank, answer) for rank, answer in enumerate(answers))
        report.judge("silent", not problem, values=[[answer["sent"], answer["restored"]] for answer in answers], **problem)
        problem = _first(verdicts.sum_problem(rank, answer, len(answers)) for rank, answer in enumerate(answers))
        report.judge("sum", not problem, values=[list(answer["got"].values()) for answer in answers], atol=verdicts.ATOL, **problem)
    report.show()


# ------------------------------------------------------------------ 6: sampler

def sampler(cluster, sampler_class):
    """Check the class `sampler_class(n, rank, world_size, seed)`: who sees which sample, in which epoch."""
    report = _Check("sampler", cluster, {"padding": 1, "epochs": 1})
    answers = report.experiment("ddp_ranks", "sampler", sampler_class, _seed())
    if answers is not None:
        cases = answers[0]
        problem = _first(verdicts.padding_problem(case) for case in cases)
        report.judge("padding", not problem, values=[[case["lengths"], sorted(sum(case["epochs"][0], []))] for case in cases], **problem)
        problem = _first(verdicts.epoch_problem(case) for case in cases)
        report.judge("epochs", not problem, values=[case["epochs"] for case in cases], **problem)
    report.show()


def _seed():
    return seed() % 2**31
