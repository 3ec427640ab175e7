"""Checks of unit 12, encoder and decoder across ranks.

This is what the notebook's kernel asks of the ranks, and how it judges the answers. Each check cell
calls one of the public functions with the cluster and the names of what the learner has defined on
the ranks. The experiments run there (`ranks`), in communicators with a short timeout, so that a
call that waits in vain becomes a FAIL line and the ranks go on. A hang outside these communicators
ends after TIMEOUT_S, and the cluster recovers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks import seed
from manyhands.checks.encoder_decoder import diagnosis
from manyhands.checks.encoder_decoder.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manyhands.checks.encoder_decoder.answers import (
        HybridCase,
        LossAnswer,
        Named,
        RaggedCase,
        Role,
        SplitCase,
        TrainingCase,
    )
    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "hybrid", "loss", "ragged", "split", "training"]

TIMEOUT_S = 25  # longer than the communicators' own timeout, which is reported first
ROLES: tuple[Role, ...] = ("encoder", "decoder")


class _Check(RankReport):
    """A report whose criteria all fail if a call of the experiment did not go through."""

    def __init__(self, name: str, cluster: Cluster) -> None:
        super().__init__(name, cluster, CRITERIA, MISTAKES, TIMEOUT_S)

    def answers(self, experiment: str, *args: Any) -> list[Any]:
        """Run it on all ranks, and return the answers by rank."""
        answers = self.on_ranks("encoder_decoder.ranks", experiment, *args, seed())
        stop_at(diagnosis.stopped(answers))
        return answers

    def cases(self, number: int, experiment: str, *args: Any) -> list[tuple[int, Any]]:
        """Run several cases of an experiment one after the other, and return [(rank, answer)]."""
        return [
            answer
            for case in range(number)
            for answer in enumerate(self.answers(experiment, *args, case))
        ]

    def judge_close(self, name: str, problems: Iterable[Problem | None], values: Any) -> None:
        """Judge a criterion whose values are compared to the unit's tolerance."""
        self.judge(name, problems, values, atol=diagnosis.ATOL, rtol=diagnosis.ATOL)


def stop_at(problem: Problem | None) -> None:
    """End the check if there is a problem, which is the details of a FAIL line."""
    if problem:
        raise Stopped(**problem)


def _sample(named: Named) -> list[list[float] | None]:
    """Return a few of each parameter's numbers, as evidence."""
    return [numbers and [*numbers[:2], numbers[-1], sum(numbers)] for numbers in named.values()]


def ragged(cluster: Cluster, function: str) -> None:
    """Check `function(rnn, sequences, state)` with sequences of different lengths.

    Its outputs and its state are judged.
    """
    with _Check("ragged", cluster) as report:
        cases: list[RaggedCase]
        cases, *_ = report.answers("ragged", function)
        report.judge_close(
            "outputs",
            map(diagnosis.outputs_problem, cases),
            [[shape, numbers[:2]] for case in cases for shape, numbers in case["outputs"]],
        )
        report.judge_close(
            "state",
            map(diagnosis.state_problem, cases),
            [[shape, numbers] for case in cases for shape, numbers in case["state"]],
        )


def loss(cluster: Cluster, function: str) -> None:
    """Check `function(scores, targets, divisor)`: the loss of a ragged batch."""
    with _Check("loss", cluster) as report:
        answer: LossAnswer
        answer, *_ = report.answers("loss", function)
        report.judge_close(
            "mean", [diagnosis.mean_problem(answer)], [answer["got"], answer["gradient"]]
        )
        report.judge_close("divisor", [diagnosis.divisor_problem(answer)], [answer["divided"]])


def split(cluster: Cluster, encoder_step: str, decoder_step: str) -> None:
    """Check the two halves of a step by loss, gradients, and what crosses between them."""
    with _Check("split", cluster) as report:
        cases: list[tuple[int, SplitCase]] = report.cases(2, "split", encoder_step, decoder_step)
        stop_at(diagnosis.unclaimed_problem(cases))
        report.judge_close(
            "loss",
            (diagnosis.loss_problem(*case) for case in cases),
            [[case["loss"], case["number"]] for _, case in cases if "loss" in case],
        )
        for role in reversed(ROLES):
            report.judge_close(
                role,
                (diagnosis.gradient_problem(*case, role) for case in cases),
                [_sample(case["got"]) for _, case in cases if case["role"] == role],
            )
        report.judge_close(
            "messages",
            (diagnosis.traffic_problem(*case) for case in cases),
            [
                [min(case["sent"][0], 2) == 0 or case["sent"][0] > 2, case["sent"][1]]
                for _, case in cases
            ],
        )


def training(cluster: Cluster, train: str) -> None:
    """Check `train(module, c, batches, lr)`: the weights of both modules after four steps."""
    with _Check("training", cluster) as report:
        answers: list[TrainingCase] = report.answers("training", train)
        ranked = list(enumerate(answers))
        report.judge_close(
            "decoder",
            (
                problem
                for rank, answer in ranked
                for problem in (
                    diagnosis.weights_problem(rank, answer, "decoder"),
                    diagnosis.losses_problem(rank, answer),
                )
            ),
            [
                [_sample(answer["got"]), answer["losses"]]
                for answer in answers
                if answer["role"] == "decoder"
            ],
        )
        report.judge_close(
            "encoder",
            (diagnosis.weights_problem(rank, answer, "encoder") for rank, answer in ranked),
            [_sample(answer["got"]) for answer in answers if answer["role"] == "encoder"],
        )


def hybrid(cluster: Cluster, step: str) -> None:
    """Check that `step(module, pair, copies, sources, targets)` gives the whole batch's gradients.

    There are two pairs with uneven shares.
    """
    with _Check("hybrid", cluster) as report:
        cases: list[tuple[int, HybridCase]] = report.cases(3, "hybrid", step)
        for role in reversed(ROLES):
            report.judge_close(
                role + "s",
                (diagnosis.hybrid_problem(*case, role) for case in cases),
                [_sample(case["got"]) for _, case in cases if case["role"] == role],
            )
