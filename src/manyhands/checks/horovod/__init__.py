"""Check unit 10, Horovod, by asking the ranks from the notebook's kernel and judging the answers.

The experiments run on the ranks (`ranks`), in a world of all ranks and in one of three. A hang
becomes FAIL lines, and the cluster heals.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from manyhands.checks import seed
from manyhands.checks.horovod import diagnosis
from manyhands.checks.horovod.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import LIMIT_S, RankReport, _on_rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.horovod.answers import (
        FinishedCase,
        JoinedCase,
        ResumedCase,
    )
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "diagnose", "epoch", "finish", "fit", "resume"]

# Horovod's own threads look for messages only now and then, on every rank, which is slow on a busy
# machine
TIMEOUT_S = 6
check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES, patience_s=TIMEOUT_S)


def _world(cluster: Cluster, size: int | None = None) -> None:
    """Start Horovod on the ranks below `size`, or on all if it is None.

    If it already runs there, nothing happens.
    """
    for step in ("leave", "enter"):
        there = [
            answer["value"]
            for answer in cluster.run(
                _on_rank, "horovod.ranks", step, size, patience_s=TIMEOUT_S, limit_s=LIMIT_S
            )
        ]
        if step == "leave" and all(there[:size]):
            return


def _in_both_worlds(report: RankReport, experiment: str, function: str) -> list[list[Any]]:
    """Return the answers of the members, from a world of all ranks and from one of three."""
    worlds: list[list[Any]] = []
    try:
        for size in (None, 3):
            _world(report.cluster, size)
            answers = report.on_ranks(
                "horovod.ranks", experiment, function, seed(), remark="behind an if"
            )
            worlds.append([answer for answer in answers if answer is not None])
    finally:
        _world(report.cluster)
    return worlds


def diagnose(cluster: Cluster, function: Callable[..., Any]) -> None:
    """Check that `function(symptoms)` names the missing edit of real training runs.

    It knows them only by their numbers.
    """
    draw = random.Random(seed())
    missing = list(diagnosis.ANSWERS)
    draw.shuffle(missing)
    with check("diagnose", cluster) as report:
        _world(cluster)
        symptoms, *_ = report.on_ranks("horovod.ranks", "symptoms", missing, seed())
        returned = diagnosis.ask(function, symptoms)
        commonest_first = sorted(
            zip(missing, symptoms, returned, strict=True),
            key=lambda case: list(diagnosis.ANSWERS).index(case[0]),
        )
        report.judge(
            "named", (diagnosis.diagnosis_problem(*case) for case in commonest_first), returned
        )


def resume(cluster: Cluster, function: str) -> None:
    """Check that `function(model, optimiser, path)` restores a checkpoint on all ranks.

    All ranks must get its weights, buffers, momenta, rate and step, although only rank 0 has the
    file.
    """
    with check("resume", cluster) as report:
        _world(cluster)
        cases: list[tuple[int, ResumedCase]] = list(
            enumerate(
                report.on_ranks("horovod.ranks", "resumed", function, seed(), remark="behind an if")
            )
        )
        evidence: dict[str, list[Literal["state", "momenta", "settings", "returned"]]] = {
            "weights": ["state"],
            "optimiser": ["momenta", "settings"],
            "step": ["returned"],
        }
        for name, keys in evidence.items():
            problems = (diagnosis.RESUMED[name](rank, case) for rank, case in cases)
            report.judge(
                name,
                problems,
                [[case[key] for key in keys] for _, case in cases],
                atol=diagnosis.ATOL,
            )


def fit(cluster: Cluster, function: str) -> None:
    """Check that `function(model, x, y, rate, steps)` ends with what a single process computes.

    That process has the rows of all ranks. The worlds have 4 ranks and 3.
    """
    with check("fit", cluster) as report:
        for name, answers in zip(
            ("four", "three"), _in_both_worlds(report, "fitted", function), strict=True
        ):
            problems = (diagnosis.fit_problem(rank, case) for rank, case in enumerate(answers))
            report.judge(name, problems, [case["got"] for case in answers], atol=diagnosis.ATOL)


def epoch(cluster: Cluster, function: str) -> None:
    """Check `function(n, rows_per_rank, epoch, base_rate)` for its rows, its steps and its rate.

    A row appears at most once, and all ranks take the same steps.
    """
    with check("epoch", cluster) as report:
        cases = [
            diagnosis.joined(case)
            for answers in _in_both_worlds(report, "epochs", function)
            for case in zip(*answers, strict=True)
        ]
        evidence: dict[str, Callable[[JoinedCase], Any]] = {
            "once": diagnosis.once_values,
            "steps": diagnosis.steps_values,
            "rate": lambda case: case["rates"],
        }
        for name, values in evidence.items():
            report.judge(
                name,
                map(diagnosis.EPOCH[name], cases),
                [values(case) for case in cases],
                atol=diagnosis.ATOL,
            )


def finish(cluster: Cluster, function: str) -> None:
    """Check that `function(model, loss, path)` writes one file, on rank 0.

    The mean loss must be in it, and on all ranks.
    """
    with check("finish", cluster) as report:
        worlds: list[list[FinishedCase]] = _in_both_worlds(report, "finished", function)
        values: list[Any] = [
            [[case["wrote"], case["loss"], case["weights"]] for case in answers]
            for answers in worlds
        ]
        report.judge("file", map(diagnosis.file_problem, worlds), values, atol=diagnosis.LOSS_ATOL)
        # rank 0 last: its own says least
        returned = [
            (rank, answers[rank], answers)
            for answers in worlds
            for rank in reversed(range(len(answers)))
        ]
        values = [[case["returned"] for case in answers] for answers in worlds]
        report.judge(
            "loss",
            (diagnosis.loss_problem(*result) for result in returned),
            values,
            atol=diagnosis.LOSS_ATOL,
        )
