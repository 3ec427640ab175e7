"""Checks of unit 19, scaling to 1024.

They compare costs and a simulated step, all in the notebook's kernel, with the package's simulator
and played events.

Machines, gradients, measured times and tables are drawn from the seed. No time is measured, because
a loop over the ranks is counted and not timed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import ask, number
from manyhands.checks.scaling import benches, cases, diagnosis, loops
from manyhands.checks.scaling.messages import CRITERIA, HINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


__all__ = [
    "HINTS",
    "bench",
    "calibration",
    "halving_doubling",
    "hierarchical",
    "pipeline",
    "slowest",
    "step",
]

check = partial(Report, criteria=CRITERIA)


def halving_doubling(function: Callable[..., Any]) -> None:
    """Check `function(p, n_bytes, latency_s, gbit_per_s)`."""
    from manyhands.simulate import collective_costs

    asked = cases.worlds(seed())
    with (
        check("halving-doubling") as report,
        closed(
            collective_costs.halving_doubling_s, collective_costs.pattern_s, collective_costs.rounds
        ),
    ):
        _judge(report, "rounds", asked, function)


def hierarchical(function: Callable[..., Any]) -> None:
    """Check an all-reduce that is made inside the nodes and between them.

    It is `function(nodes, ranks_per_node, n_bytes, inside, between, links_per_node, all_reduce_s)`.
    """
    from manyhands.simulate import collective_costs

    asked = cases.clusters(seed())
    with check("hierarchical") as report, closed(collective_costs.hierarchical_s):
        _judge(report, "levels", asked, function)


def step(function: Callable[..., Any]) -> None:
    """Check `function(slow, ready_s, sizes, bucket_bytes, all_reduce)`.

    With 100,000 ranks, the lines that run are counted.
    """
    from manyhands.simulate import fusion, training_step

    with check("step") as report:
        asked, large, ours = (
            cases.steps(seed()),
            cases.large(seed()),
            (fusion.buckets, fusion.finish_s, training_step.step),
        )
        with report.part("finish"), closed(*ours):
            _judge(report, "finish", asked, function)
        with report.part("many"), closed(*ours):
            answer = number(loops.within(diagnosis.MOST_LINES, function, *large.arguments()))
            report.judge("many", [diagnosis.problem(large, answer)], [answer], rtol=1e-6)


def slowest(slowest_of: Callable[..., Any], efficiency: Callable[..., Any]) -> None:
    """Check `slowest_of(p, times_s)` and `efficiency(base, many)`."""
    from manyhands.simulate import survival

    asked = cases.jitters(seed())
    with check("slowest") as report, closed(survival.slowest):
        with report.part("slowest"):
            _judge(report, "slowest", asked, slowest_of)
        with report.part("efficiency"):
            _judge(report, "efficiency", cases.pairs(seed()), efficiency)


def pipeline(function: Callable[..., Any]) -> None:
    """Check `function(forward_s, backward_s, micro_batches)` against GPipe's orders.

    They are played event by event.
    """
    from manyhands.simulate import pipeline, training_step

    asked = cases.pipelines(seed())
    with check("pipeline") as report, closed(pipeline.play, training_step.step):
        _judge(report, "pipeline", asked, function)


def calibration(calibrate: Callable[..., Any], predict_rest: Callable[..., Any]) -> None:
    """Check `calibrate(rows, batch, network_s)`, and `predict_rest`.

    The latter is `predict_rest(rows, batch, network_s, calibrate)`, which gets a correct
    `calibrate`.
    """
    from manyhands.simulate import calibrate as fitted

    with check("calibration") as report, closed(fitted):
        with report.part("constants"):
            asked = cases.tables(seed())
            answers = [diagnosis.numbers(ask(calibrate, *case.arguments()), 2) for case in asked]
            report.judge("constants", diagnosis.problems(asked, answers), answers, rtol=1e-6)
        with report.part("rest"):
            asked = cases.rests(seed())
            answers = [
                diagnosis.numbers(ask(predict_rest, *case.arguments()), len(case.right))
                for case in asked
            ]
            report.judge("rest", diagnosis.problems(asked, answers), answers, rtol=1e-6)


def bench(images_per_s: Callable[..., Any]) -> None:
    """Check `images_per_s(bench, steps, warmup, batch)` on benches with a virtual clock."""
    with check("bench") as report:
        for name in ("even", "uneven"):
            with report.part(name):
                asked, answers, steps = benches.asked(seed(), name, uneven=name == "uneven"), [], []
                for case in asked:
                    answers.append(number(ask(images_per_s, *case.arguments())))
                    steps.append(case.steps_message())
                problems = [
                    problem and problem | ({"mistake": words} if words else {})
                    for problem, words in zip(
                        diagnosis.problems(asked, answers), steps, strict=True
                    )
                ]
                report.judge(name, problems, answers, rtol=1e-6)


def _judge(
    report: Report, name: str, asked: Sequence[cases.Case], function: Callable[..., Any]
) -> None:
    answers = [number(ask(function, *case.arguments())) for case in asked]
    report.judge(name, diagnosis.problems(asked, answers), answers, rtol=1e-6)
