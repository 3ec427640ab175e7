"""Checks of unit 07, MultiWorkerMirroredStrategy. What needs no TensorFlow is asked in the notebook's kernel; the rest runs on the workers.

The experiments on the workers are in `ranks`; a hang becomes FAIL lines, and the cluster heals.
"""

import json
import tempfile
from functools import partial

import numpy as np

from manyhands.checks import seed
from manyhands.checks.in_kernel import call
from manyhands.checks.multiworker import input_verdicts as inputs
from manyhands.checks.multiworker import verdicts
from manyhands.checks.multiworker.words import HINTS, MISTAKES, TEXTS
from manyhands.checks.on_ranks import RankReport, first

__all__ = ["HINTS", "config", "dataset", "loss", "role", "save", "seen"]

PATIENCE_S = 6  # TensorFlow's calls show only whether the process is idle: on a busy machine it may be so for a while
_report = partial(RankReport, texts=TEXTS, mistakes=MISTAKES)


def _ask(report, function, *args):
    """What the learner's function returns in this kernel; None after a FAIL line for each criterion."""
    answer, error = call(function, *args)
    if error:
        for name in report.points:
            report.judge(name, False, mistake=error)
        report.show()
    return answer, bool(error)


def _layouts(rng):
    """Layouts as arguments of tf_config, without the process's number: hosts, first port, roles."""
    for each, roles in zip((2, 1, 3), ({"worker": int(rng.integers(2, 7))}, {"chief": 1, "worker": int(rng.integers(1, 6))}, {"chief": 1, "worker": 2, "ps": int(rng.integers(1, 5))})):
        count = sum(roles.values())
        names = [f"node{k}" for k in rng.choice(90, size=count, replace=False) + 10]
        yield [names[i // each] for i in range(count)], int(rng.integers(2000, 9000)), roles


def config(function):
    """Check `function(hosts, first_port, roles, number)`: TF_CONFIG of each process of three layouts."""
    report, found = _report("config", None, {"cluster": 2, "task": 1}), []
    for layout in _layouts(np.random.default_rng(seed())):
        configs = []
        for number in range(len(layout[0])):
            hosts, first_port, roles = layout
            answer, failed = _ask(report, function, list(hosts), first_port, dict(roles), number)
            if failed:
                return
            one, problem = verdicts.parsed(answer)
            if problem:
                for name in report.points:
                    report.judge(name, False, **problem)
                return report.show()
            configs.append(one)
        found.append((layout, configs))
    problem = first(verdicts.cluster_problem(*one) for one in found)
    report.judge("cluster", not problem, values=[json.dumps(one["cluster"], sort_keys=True) for _, configs in found for one in configs], **problem)
    problem = first(verdicts.task_problem(*one) for one in found)
    report.judge("task", not problem, values=[[one["task"]["type"], one["task"]["index"]] for _, configs in found for one in configs], **problem)
    report.show()


def role(function):
    """Check `function(config)`: what each process of three layouts reads in its TF_CONFIG."""
    report, found = _report("role", None, {"workers": 1, "chief": 1}), []
    for layout in _layouts(np.random.default_rng(seed())):
        for number in range(len(layout[0])):
            told = verdicts.config_of(*layout, number)
            answer, failed = _ask(report, function, json.dumps(told))
            if failed:
                return
            found.append((told, answer))
    odd = first(verdicts.role_shape_problem(answer) for _, answer in found)
    for name, problem_of, keys in (("workers", verdicts.workers_problem, ("workers", "worker")), ("chief", verdicts.chief_problem, ("chief",))):
        problem = odd or first(problem_of(*one) for one in found)
        report.judge(name, not problem, values=[] if odd else [[answer[key] for key in keys] for _, answer in found], **problem)
    report.show()


def loss(cluster, function):
    """Check `function(example_losses, weights, decay, global_batch)`: the parts of all workers add up to the objective of the whole batch."""
    report = _report("loss", cluster, {"losses": 2, "decay": 1})
    answers = report.experiment("multiworker.ranks", "losses", function, seed(), patience_s=PATIENCE_S)
    if answers is not None:
        for name in report.points:
            cases = [case for case in answers[0] if bool(case["decay"]) == (name == "decay")]
            problem = first(map(verdicts.loss_problem, cases))
            report.judge(name, not problem, values=[[case["got"], case["scalar"]] for case in cases], atol=verdicts.ATOL, **problem)
    report.show()


def seen(function):
    """Check `function(policy, files, global_batch, workers)`: which worker sees which samples, for each auto-shard policy."""
    rng, report, cases = np.random.default_rng(seed()), _report("seen", None, {"OFF": 1, "DATA": 1, "FILE": 1}), []
    for workers in (2, 3, 4):
        files = [int(size) for size in rng.integers(2, 7, size=workers + int(rng.integers(1, 4)))]
        batch = workers * int(rng.integers(2, 4)) + (workers == 4) * int(rng.integers(1, 3))  # on four workers it does not divide
        files[-1] += (workers - sum(files)) % batch  # the last batch has one sample for each worker
        cases += [(policy, files, batch, workers) for policy in report.points]
    answers = []
    for policy, files, batch, workers in cases:
        answer, failed = _ask(report, function, policy, list(files), batch, workers)
        if failed:
            return
        answers.append(verdicts.plain_lists(answer, workers))
    for name in report.points:
        own = [(case, answer) for case, answer in zip(cases, answers) if case[0] == name]
        problem = first(verdicts.seen_problem(*one) for one in own)
        report.judge(name, not problem, values=[answer for _, answer in own], **problem)
    report.show()


def _joined(answers):
    """The cases of the experiment `datasets`, each with all its pipelines."""
    cases = []
    for parts in zip(*answers):
        own = {pipeline: epochs for part in parts for pipeline, epochs in part["mine"].items()}
        told = [one for pipeline in sorted(own) for one in own[pipeline]]
        error = next((one["error"] for one in told if one["error"]), None)
        epochs = [] if error else [[own[pipeline][epoch]["batches"] for pipeline in sorted(own)] for epoch in range(2)]
        cases.append({**parts[0], "error": error, "epochs": epochs, "labels": all(one.get("labels") for one in told)})
    return cases


def dataset(cluster, function):
    """Check `function(context, x, y, global_batch, epoch, seed)`: the input of one worker."""
    report = _report("dataset", cluster, {"once": 1, "batch": 1, "order": 1})
    answers = report.experiment("multiworker.ranks", "datasets", function, seed(), patience_s=PATIENCE_S)
    if answers is not None:
        cases = _joined(answers)
        evidence = {"once": lambda case: [case["n"], case["labels"], *inputs.together(case)] if case["epochs"] else [],
                    "batch": lambda case: [case["n"], [max(map(len, own), default=0) for own in case["epochs"][0]], not inputs.batch_problem(case)] if case["epochs"] else [],
                    "order": lambda case: [case["n"], not inputs.order_problem(case)]}
        for name, problem_of in (("once", inputs.once_problem), ("batch", inputs.batch_problem), ("order", inputs.order_problem)):
            problem = first(map(problem_of, cases))
            report.judge(name, not problem, values=[evidence[name](case) for case in cases], **problem)
    report.show()


def save(cluster, function):
    """Check `function(checkpoint, path, chief, worker)`: all write, the chief's file stays, nothing else does."""
    report = _report("save", cluster, {"file": 1, "clean": 1})
    with tempfile.TemporaryDirectory(prefix="manyhands-") as folder:
        answers = report.experiment("multiworker.ranks", "saves", function, seed(), folder, remark="save alone", patience_s=PATIENCE_S)
        found = answers and report.experiment("multiworker.ranks", "saved", folder, patience_s=PATIENCE_S)
    if found:
        there = {**found[0], "right": answers[0]["right"]}
        problem = inputs.file_problem(answers, there)
        wrote = [[one["wrote"] > 0, one["to the chief's"]] for one in answers]
        report.judge("file", not problem, values=[there["got"] or "none", wrote], atol=verdicts.ATOL, **(problem or {}))
        problem = inputs.clean_problem(answers, there["others"])
        report.judge("clean", not problem, values=[answers[0]["right"], [one["left"] for one in answers], there["others"]], **(problem or {}))
    report.show()
