"""Checks of unit 14, pipelines.

Orders, times, cuts and plans are asked for in the notebook's kernel, and `run_stage` and `update`
on the ranks. Pipelines, networks and jobs are drawn from the seed. Orders and plans are judged by
simulation, so no answer depends on how long anything takes here.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import ask, ask_kept, number
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.pipeline import cases, diagnosis, plan_cases, plan_diagnosis, update_diagnosis
from manyhands.checks.pipeline.in_time import answer_in
from manyhands.checks.pipeline.messages import CRITERIA, HINTS, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manyhands.checks.pipeline.answers import RunCase, UpdateCase
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "bubble", "cut", "finish", "orders", "plan", "run", "update"]

check = partial(Report, criteria=CRITERIA)
TIMEOUT_S = 3
ANSWER_LIMIT_S = 3  # for an answer that takes milliseconds


def bubble(function: Callable[..., Any]) -> None:
    """Check `function(stages, micro_batches, chunks)`, which returns the idle part of a step."""
    from manyhands.simulate import pipeline

    with check("bubble") as report:
        replies: dict[str, list[Any]] = {"stages": [], "chunks": []}
        with closed(pipeline.bubble):
            for case in cases.bubbles(seed()):
                replies["stages" if case[2] == 1 else "chunks"].append(
                    (case, number(ask(function, *case)))
                )
        for name, few in replies.items():
            report.judge(
                name,
                (diagnosis.bubble_problem(*reply) for reply in few),
                [got for _, got in few],
                rtol=1e-9,
            )


def orders(gpipe_order: Callable[..., Any], one_f_one_b_order: Callable[..., Any]) -> None:
    """Check `gpipe_order(rank, stages, micro_batches)` and the same for 1F1B, by simulation."""
    from manyhands.simulate import pipeline

    with check("orders") as report:
        asked = cases.pipelines(seed())
        for names, function in ((("gpipe",), gpipe_order), (("1f1b", "memory"), one_f_one_b_order)):
            with report.part(*names):  # one of them counts even if the other is not written yet
                with closed(pipeline.gpipe, pipeline.one_f_one_b):
                    answers = [
                        [diagnosis.pairs(ask(function, rank, *case)) for rank in range(case[0])]
                        for case in asked
                    ]
                problems = [
                    diagnosis.order_problem(names[0], *pair)
                    for pair in zip(asked, answers, strict=True)
                ]
                values = [
                    -1.0 if problem else diagnosis.step_s(answer)[0]
                    for problem, answer in zip(problems, answers, strict=True)
                ]
                report.judge(names[0], problems, values, rtol=1e-9)
                if "memory" in names:
                    report.judge(
                        "memory",
                        map(diagnosis.alive_problem, asked, answers),
                        [
                            [
                                diagnosis.alive_evidence(case, order, rank)
                                for rank, order in enumerate(answer)
                            ]
                            for case, answer in zip(asked, answers, strict=True)
                        ],
                    )


def finish(function: Callable[..., Any]) -> None:
    """Check `function(orders, forward_s, backward_s, message_s)` -> times.

    It must refuse orders that can never be completed.
    """
    from manyhands.simulate import pipeline

    with check("finish") as report:
        for name in ("chain", "messages"):
            asked = cases.timings(seed(), name == "messages")
            with closed(pipeline.play):
                answers = [_times(function, case) for case in asked]
            values: list[Any] = [
                diagnosis.times_of(answer, case[0])
                for case, answer in zip(asked, answers, strict=True)
            ]
            report.judge(name, map(diagnosis.finish_problem, asked, answers), values, rtol=1e-6)
        deadlocks = cases.deadlocks(seed())
        with closed(pipeline.play):
            replies = _ask_each(function, [orders for orders, _ in deadlocks])
        problems = (
            diagnosis.stuck_problem(possible, error, ANSWER_LIMIT_S)
            for (_, possible), (_, error) in zip(deadlocks, replies, strict=True)
        )
        values = [
            diagnosis.stuck_evidence(orders, *reply)
            for (orders, _), reply in zip(deadlocks, replies, strict=True)
        ]
        report.judge("stuck", problems, values)


def _times(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """Return the learner's times. message_s is left out if it is 0, since it has a default."""
    return ask_kept(function, *(case if case[-1] else case[:-1]))


def _ask_each(
    function: Callable[..., Any], many: Iterable[list[list[Any]]]
) -> list[tuple[Any, BaseException | None]]:
    """Return (answer, error) of the function for each of these orders.

    A function that did not end once is not called again.
    """
    replies: list[tuple[Any, BaseException | None]] = []
    for orders in many:
        endless = [reply for reply in replies if isinstance(reply[1], TimeoutError)]
        replies += endless[:1] or [
            answer_in(
                ANSWER_LIMIT_S,
                function,
                copy.deepcopy(orders),
                [1.0] * len(orders),
                [2.0] * len(orders),
                0.0,
            )
        ]
    return replies


def cut(function: Callable[..., Any]) -> None:
    """Check that `function(costs, stages)` -> slices holds each layer once.

    Its largest stage must be the smallest possible.
    """
    from manyhands.simulate import pipeline

    with check("cut") as report:
        asked = cases.networks(seed())
        with closed(pipeline.cut, cases.least, cases.smallest):
            answers = [
                (case, diagnosis.blocks_of(ask(function, list(case[0]), case[1]), case[0]))
                for case in asked
            ]
            few = asked[-1][0][:2]
            refused = isinstance(answer_in(ANSWER_LIMIT_S, function, list(few), 3)[1], ValueError)
        problems = [diagnosis.blocks_problem(*answer) for answer in answers]
        accepted = None if refused else diagnosis.problem("accepted", layers=len(few), stages=3)
        values = [
            (
                [start + (stop - start) * sum(case[0][start:stop]) for start, stop in blocks or ()]
                if problem
                else sum(case[0])
            )
            for problem, (case, blocks) in zip(problems, answers, strict=True)
        ]
        report.judge("blocks", [*problems, accepted], [*values, refused])
        worst = [
            -1 if problem else diagnosis.dearest_of(case[0], blocks)
            for problem, (case, blocks) in zip(problems, answers, strict=True)
        ]
        report.judge("dearest", (diagnosis.dearest_problem(*answer) for answer in answers), worst)


def run(cluster: Cluster, name: str) -> None:
    """Compare the ranks' `name(order, stage, inputs, targets, shapes, group)` with one process.

    That process has the whole network.
    """
    with RankReport("run", cluster, CRITERIA, MISTAKES, TIMEOUT_S) as report:
        answers: list[list[RunCase]] = report.on_ranks(
            "pipeline.ranks", "run", name, seed(), remark="hangs"
        )
        runs = [case for answer in answers for case in answer]
        report.judge(
            "loss", map(diagnosis.loss_problem, runs), [case["loss"] for case in runs], rtol=1e-7
        )
        problems = map(diagnosis.gradients_problem, runs)
        report.judge(
            "gradients",
            problems,
            [
                [gradient["sample"] for case in runs for gradient in case["gradients"]],
                [len(case["changed"]) for case in runs],
            ],
            rtol=1e-7,
            atol=1e-9,
        )
        report.judge(
            "messages", map(diagnosis.messages_problem, runs), [case["sent"] for case in runs]
        )
        one_by_one = [case for case in runs if case["schedule"] == "1f1b"]
        report.judge(
            "memory",
            map(diagnosis.holds_problem, one_by_one),
            list(map(diagnosis.holds_evidence, one_by_one)),
        )


def plan(function: Callable[..., Any]) -> None:
    """Check that `function(job)` -> (stages, micro-batches, schedule) fits.

    No other plan that fits may be cheaper.
    """
    with check("plan") as report:
        jobs = plan_cases.jobs(seed())
        answers = [plan_diagnosis.ask_plan(function, copy.deepcopy(job)) for job, _ in jobs]
        judgements = plan_diagnosis.problems(jobs, answers)
        values = [
            plan_diagnosis.evidence(job, others, answer)
            for (job, others), answer in zip(jobs, answers, strict=True)
        ]
        for name in report.asked:
            report.judge(
                name,
                (problems[name] for problems in judgements),
                [value[name] for value in values],
                rtol=1e-6,
            )


def update(cluster: Cluster, name: str) -> None:
    """Check the ranks' `name(stage, optimiser, max_norm, shared, ends, group)`.

    It must clip and step as a single process does, and return the norm.
    """
    with RankReport("update", cluster, CRITERIA, MISTAKES, TIMEOUT_S) as report:
        answers: list[list[UpdateCase]] = report.on_ranks(
            "pipeline.update_ranks", "update", name, seed(), remark="update hangs"
        )
        updates = [case for answer in answers for case in answer]
        update_diagnosis.mark_small_groups(updates)
        clear_first = sorted(updates, key=update_diagnosis.ambiguous)
        report.judge(
            "norm",
            map(update_diagnosis.norm_problem, clear_first),
            [case["norm"] for case in updates],
            rtol=1e-5,
        )
        report.judge(
            "weights",
            map(update_diagnosis.weights_problem, clear_first),
            [case["weights"] for case in updates],
            rtol=1e-5,
            atol=1e-5,
        )
