"""Checks of unit 07, MultiWorkerMirroredStrategy.

What needs no TensorFlow is asked in the notebook's kernel, while the rest runs on the workers.

The experiments on the workers are in `ranks`. A hang becomes FAIL lines, and the cluster heals.
"""

from __future__ import annotations

import json
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import ask_kept
from manyhands.checks.multiworker import diagnosis
from manyhands.checks.multiworker import input_diagnosis as inputs
from manyhands.checks.multiworker.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from manyhands.checks.multiworker.answers import (
        FittedCase,
        InputCase,
        InputSizes,
        Judged,
        LossCase,
        SaveAnswer,
        Saved,
    )
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "config", "dataset", "fit", "loss", "save", "seen"]

# TensorFlow's calls show only whether the process is idle, and on a busy machine it may be idle for
# a while
PATIENCE_S = 6
check = partial(Report, criteria=CRITERIA)
check_on_workers = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES, patience_s=PATIENCE_S)


def _layouts(rng: np.random.Generator) -> Iterator[diagnosis.Layout]:
    """Yield layouts, which are arguments of tf_config without the process's number.

    These are hosts, first port and roles.
    """
    for each, roles in zip(
        (2, 1, 3),
        (
            {"worker": int(rng.integers(2, 7))},
            {"chief": 1, "worker": int(rng.integers(1, 6))},
            {"chief": 1, "worker": 2, "ps": int(rng.integers(1, 5))},
        ),
        strict=True,
    ):
        count = sum(roles.values())
        names = [f"node{k}" for k in rng.choice(90, size=count, replace=False) + 10]
        yield [names[i // each] for i in range(count)], int(rng.integers(2000, 9000)), roles
    # in an unusual order, and with one more kind
    roles = {
        "ps": int(rng.integers(1, 3)),
        "worker": int(rng.integers(2, 5)),
        "evaluator": 1,
        "chief": 1,
    }
    few = [f"node{k}" for k in rng.choice(90, size=3, replace=False) + 10]
    some = [few[k] for k in rng.integers(3, size=sum(roles.values()) - 4)]
    # a host appears again after a different one, and not all have the same number
    yield [few[0], few[1], few[0], *some, few[2]], int(rng.integers(2000, 9000)), roles


def config(function: Callable[..., Any]) -> None:
    """Check that `function(hosts, first_port, roles, number)` returns TF_CONFIG.

    It is called for each process of four layouts.
    """
    with check("config") as report:
        answered: list[tuple[diagnosis.Layout, list[dict[str, Any]]]] = []
        for layout in _layouts(np.random.default_rng(seed())):
            hosts, first_port, roles = layout
            with closed(diagnosis.config_of):
                answered.append(
                    (
                        layout,
                        [
                            _parsed(ask_kept(function, hosts, first_port, dict(roles), number))
                            for number in range(len(hosts))
                        ],
                    )
                )
        configs = [config for _, configs in answered for config in configs]
        problems = (diagnosis.cluster_problem(*pair) for pair in answered)
        report.judge(
            "cluster",
            problems,
            [json.dumps(config["cluster"], sort_keys=True) for config in configs],
        )
        problems = (diagnosis.task_problem(*pair) for pair in answered)
        report.judge(
            "task",
            problems,
            [[config["task"]["type"], config["task"]["index"]] for config in configs],
        )


def _parsed(answer: Any) -> dict[str, Any]:
    """Return the learner's TF_CONFIG as a dictionary, or raise `Stopped` if it is not one."""
    config, problem = diagnosis.parsed(answer)
    if problem:
        raise Stopped(**problem)
    return config


def fit(cluster: Cluster, function: str) -> None:
    """Check the steps and weights of a function that calls Model.fit on all workers.

    It is `function(make_model, x, y, global_batch, epochs, rate)`.
    """
    with check_on_workers("fit", cluster) as report:
        cases: list[tuple[int, FittedCase]] = list(
            enumerate(report.on_ranks("multiworker.ranks", "fits", function, seed()))
        )
        report.judge(
            "steps",
            (diagnosis.steps_problem(*ranked) for ranked in cases),
            [[case["steps"] or 0, case["rate"]] for _, case in cases],
        )
        # the first problem is shown, and "other" says least
        specific_first = sorted(cases, key=lambda ranked: ranked[1]["looks"] == "other")
        report.judge(
            "weights",
            (diagnosis.weights_problem(*ranked) for ranked in specific_first),
            [case["got"] for _, case in cases],
            atol=diagnosis.FIT_ATOL,
        )


def loss(cluster: Cluster, function: str) -> None:
    """Check that the parts of all workers add up to the objective of the whole batch.

    They are what `function(example_losses, weights, decay, global_batch)` returns.
    """
    with check_on_workers("loss", cluster) as report:
        all_cases: list[LossCase]
        all_cases, *_ = report.on_ranks("multiworker.ranks", "losses", function, seed())
        for name in report.asked:
            cases = [case for case in all_cases if bool(case["decay"]) == (name == "decay")]
            report.judge(
                name,
                map(diagnosis.loss_problem, cases),
                [[case["got"], case["scalar"]] for case in cases],
                atol=diagnosis.ATOL,
            )


def seen(function: Callable[..., Any]) -> None:
    """Check which worker sees which samples, for each auto-shard policy.

    `function(policy, files, global_batch, workers)` returns it.
    """
    with check("seen") as report:
        rng = np.random.default_rng(seed())
        answered: dict[
            str, list[tuple[tuple[str, list[int], int, int], list[list[int]] | None]]
        ] = {name: [] for name in report.asked}
        for workers in (2, 3, 4):
            files = [
                int(size) for size in rng.integers(2, 7, size=workers + int(rng.integers(1, 4)))
            ]
            # on four workers it does not divide
            batch = workers * int(rng.integers(2, 4)) + (workers == 4) * int(rng.integers(1, 3))
            # the last batch has one sample for each worker
            files[-1] += (workers - sum(files)) % batch
            for policy, own in answered.items():
                with closed(diagnosis.who_sees):
                    answer = ask_kept(function, policy, files, batch, workers)
                own.append(
                    ((policy, files, batch, workers), diagnosis.plain_lists(answer, workers))
                )
        for name, own in answered.items():
            report.judge(
                name, (diagnosis.seen_problem(*pair) for pair in own), [answer for _, answer in own]
            )


def _joined(answers: Sequence[Sequence[InputSizes]]) -> list[InputCase]:
    """Return the cases of the experiment `datasets`, each with all its pipelines."""
    cases: list[InputCase] = []
    for parts in zip(*answers, strict=True):
        first: InputSizes = parts[0]
        own = {pipeline: epochs for part in parts for pipeline, epochs in part["mine"].items()}
        runs = [epoch for pipeline in sorted(own) for epoch in own[pipeline]]
        error = next((epoch["error"] for epoch in runs if epoch["error"]), None)
        epochs = (
            []
            if error
            else [[own[pipeline][run]["batches"] for pipeline in sorted(own)] for run in range(3)]
        )
        cases.append(
            {
                **first,
                "error": error,
                "epochs": epochs,
                "labels": all(epoch.get("labels") for epoch in runs),
            }
        )
    return cases


def dataset(cluster: Cluster, function: str) -> None:
    """Check the input of one worker that a function returns.

    It is `function(context, x, y, global_batch, epoch, seed)`.
    """
    with check_on_workers("dataset", cluster) as report:
        cases = _joined(report.on_ranks("multiworker.ranks", "datasets", function, seed()))
        evidence: dict[str, Callable[[InputCase], Any]] = {
            "once": lambda case: (
                [case["n"], case["labels"], *inputs.together(case)] if case["epochs"] else []
            ),
            "batch": lambda case: (
                [
                    case["n"],
                    [max(map(len, own), default=0) for own in case["epochs"][0]],
                    not inputs.batch_problem(case),
                ]
                if case["epochs"]
                else []
            ),
            "order": lambda case: [case["n"], not inputs.order_problem(case)],
        }
        for name, problem_of in (
            ("once", inputs.once_problem),
            ("batch", inputs.batch_problem),
            ("order", inputs.order_problem),
        ):
            report.judge(name, map(problem_of, cases), [evidence[name](case) for case in cases])


def save(cluster: Cluster, function: str) -> None:
    """Check that with `function(checkpoint, path, chief, worker)` all workers write.

    Only the chief's file must stay.
    """
    with check_on_workers("save", cluster) as report:
        with tempfile.TemporaryDirectory(prefix="manyhands-") as folder:
            answers: list[SaveAnswer] = report.on_ranks(
                "multiworker.ranks", "saves", function, seed(), folder, remark="save alone"
            )
            saved: Saved
            saved, *_ = report.on_ranks("multiworker.ranks", "saved", folder)
        there: Judged = {**saved, "right": answers[0]["right"]}
        wrote = [[answer["wrote"] > 0, answer["to the chief's"]] for answer in answers]
        report.judge(
            "file",
            [inputs.file_problem(answers, there)],
            [there["got"] or "none", wrote],
            atol=diagnosis.ATOL,
        )
        left = [answers[0]["right"], [answer["left"] for answer in answers], there["others"]]
        report.judge("clean", [inputs.clean_problem(answers, there["others"])], left)
