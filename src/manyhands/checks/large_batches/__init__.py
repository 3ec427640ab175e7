"""Checks of unit 17, large batches.

Everything runs in the notebook's own kernel, with several runs of one small network side by side.

Rates, layers, gradients, digits and starts are drawn from the seed. The challenge counts the images
of every gradient as they pass, trains the small batch itself with the same seed, and compares the
two by Student's t. A mistake of the learner, even an exception, becomes a FAIL line.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.in_kernel import array, ask, ask_kept, call, number
from manyhands.checks.large_batches import diagnosis, schedule_diagnosis
from manyhands.checks.large_batches import task as tasks
from manyhands.checks.large_batches.messages import CRITERIA, HINTS, MARGIN, MISTAKES
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch


__all__ = ["HINTS", "challenge", "growing", "lars", "noise", "schedule"]

FACTOR = 32  # times the batch


class _Check(Report):
    """The report of this unit, with a separate generator that the seed and its name determine."""

    def __init__(self, name: str) -> None:
        super().__init__(name, CRITERIA)
        self.rng = np.random.default_rng([seed() % 2**32, *name.encode()])


def schedule(function: Callable[..., Any]) -> None:
    """Check `function(epoch, base_rate, k, rule, warm_up, drops, drop_by)`.

    It must return the rate of the step that begins at `epoch`.
    """
    with _Check("schedule") as report:
        replies: dict[str, list[tuple[schedule_diagnosis.Asked, float]]] = {
            name: [] for name in report.asked
        }
        for case, probes in _schedules(report.rng):
            for name, epochs in probes.items():
                for epoch in epochs:
                    answer = _rate(function, epoch, *case)
                    replies[name].append(((epoch, *case), number(answer)))
        problem_of = {
            "scaling": schedule_diagnosis.scaling_problem,
            "warm-up": schedule_diagnosis.warm_up_problem,
            "drops": schedule_diagnosis.drops_problem,
        }
        for name, cases in replies.items():
            report.judge(
                name,
                (problem_of[name](*reply) for reply in cases),
                [got for _, got in cases],
                rtol=1e-6,
            )


def _rate(function: Callable[..., Any], *case: Any) -> Any:
    """Return what `function` returns. If it raises an exception, the message names the call."""
    try:
        return ask_kept(function, *case)
    except Stopped as stopped:
        if " raised " in str(stopped):
            raise Stopped(
                f"{stopped}, when called with {schedule_diagnosis.arguments(case)}."
            ) from None
        raise


def _schedules(
    draw: np.random.Generator,
) -> Iterator[tuple[schedule_diagnosis.Schedule, dict[str, list[float]]]]:
    """Yield six schedules, and for each criterion the epochs to ask for.

    A schedule is the arguments of the learner's function without the epoch.
    """
    for rule in ("linear", "square root"):
        for warm_up in (0, int(draw.integers(2, 5)), draw.integers(5, 12) / 4):
            first = int(np.ceil(warm_up)) + int(draw.integers(2, 4))
            # one drop in the middle of an epoch
            drops = [first, first + int(draw.integers(2, 4)) + 0.5, first + 5]
            case = (
                round(draw.uniform(0.01, 0.2), 3),
                int(draw.integers(3, 65)),
                rule,
                warm_up,
                drops,
                int(draw.choice([2, 5, 10])),
            )
            yield (
                case,
                {
                    "scaling": [warm_up, first - 0.25],
                    "drops": [drops[2] + 1.5, first, drops[1] - 0.25, drops[1]],
                    "warm-up": [warm_up * 0.875, 0.0, warm_up * 0.3] if warm_up else [],
                },
            )


def lars(function: Callable[..., Any]) -> None:
    """Check `function(weights, gradients, memory, rate, momentum, decay, trust)`.

    It has tensors [runs, ...] for each layer, which are changed in place.
    """
    import torch

    with _Check("lars") as report:
        draw, runs, (a, b) = (
            report.rng,
            int(report.rng.integers(2, 5)),
            report.rng.integers(3, 7, 2),
        )
        for name in report.asked:
            start = [
                draw.uniform(0.2, 3, (runs, 1, 1)) * draw.normal(size=(runs, *shape))
                for shape in ((a, b), (1, b), (b, 2))
            ]
            count, decay = (
                (3 if name == "memory" else 1),
                (0.0 if name == "ratio" else draw.uniform(0.1, 0.5)),
            )
            gradients = [
                [draw.uniform(0.05, 2, (runs, 1, 1)) * draw.normal(size=w.shape) for w in start]
                for _ in range(count)
            ]
            if name == "zero":
                start[1][:], gradients[0][2][0] = 0, 0
            steps = [
                (
                    draw.uniform(0.5, 3),
                    draw.uniform(0.3, 0.8) if name == "memory" else 0.0,
                    decay,
                    draw.uniform(0.01, 0.2),
                )
                for _ in range(count)
            ]
            weights = [torch.from_numpy(w.copy()) for w in start]
            memory = [torch.zeros_like(w) for w in weights]
            touched = False
            for these, numbers in zip(gradients, steps, strict=True):
                given = [torch.from_numpy(g.copy()) for g in these]
                # separate lists, so that only the tensors are shared
                ask(function, list(weights), given, list(memory), *map(float, numbers))
                touched |= any(
                    not np.array_equal(array(mine), g)
                    # strict=False, because the learner's code may have changed the list
                    for mine, g in zip(given, these, strict=False)
                )
            got = diagnosis.flat([array(w) for w in weights])
            problem = diagnosis.lars_problem(name, start, gradients, steps, got, touched)
            report.judge(name, [problem], [*got, touched], rtol=2 * diagnosis.LARS_RTOL, atol=1e-7)


def noise(function: Callable[..., Any]) -> None:
    """Check `function(gradients, rows)` -> (|G|^2, trace, their quotient).

    The gradients [steps, ranks, numbers] are of `rows` images each.
    """
    import torch

    with _Check("noise") as report:
        draw = report.rng
        replies: list[tuple[tuple[np.ndarray, np.ndarray, int, int], list[float]]] = []
        for steps, ranks in ((24, 4), (16, 8), (32, 3)):
            numbers, rows = int(draw.integers(30, 60)), int(draw.integers(8, 20))
            truth = draw.normal(size=numbers)
            # of one image's gradient
            deviation = draw.uniform(0.5, 1.5, numbers) * draw.uniform(4, 10)
            gradients = truth + deviation / rows**0.5 * draw.normal(size=(steps, ranks, numbers))
            answer = ask(function, torch.from_numpy(gradients.copy()), rows)
            replies.append(
                (
                    (gradients.reshape(-1, numbers), gradients.mean(1), rows, ranks * rows),
                    diagnosis.three(answer),
                )
            )
        for index, name in enumerate(report.asked):
            report.judge(
                name,
                (diagnosis.noise_problem(index, *reply) for reply in replies),
                [got[index] for _, got in replies],
                rtol=1e-6,
            )


def growing(sgd_noise: Callable[..., Any], grow: Callable[..., Any]) -> None:
    """Check `sgd_noise(rate, momentum, images, batch)`, and `grow`.

    The latter is `grow(phases, batch, largest)` -> [(epochs, rate, batch)].
    """
    with _Check("growing") as report:
        draw = report.rng
        scales: list[tuple[tuple[float, float, int, int], float]] = []
        asked: list[diagnosis.Plan] = []
        for _ in range(4):
            batch = int(2 ** draw.integers(4, 9))
            case = (
                round(draw.uniform(0.01, 0.5), 3),
                round(draw.uniform(0.3, 0.95), 2),
                batch * int(draw.integers(2, 30)) + int(draw.integers(1, batch)),
                batch,
            )
            scales.append((case, number(ask(sgd_noise, *case))))
        for room in ("enough", "some", "none", "less"):
            batch, rate, drops = (
                int(2 ** draw.integers(4, 8)),
                round(draw.uniform(0.05, 0.5), 3),
                [int(draw.choice([2, 4, 5])) for _ in range(2)],
            )
            # not a whole number, so it must be rounded down
            grown = [
                batch,
                *(
                    batch * drop - draw.uniform(0.1, 0.4)
                    for drop in (drops[0], drops[0] * drops[1])
                ),
            ]
            # epochs need not be whole
            phases = [(draw.integers(4, 18) / 2, rate * batch / larger) for larger in grown]
            factor = {
                "enough": drops[0] * drops[1] * 2,
                "some": drops[0] * drops[1] - int(draw.integers(1, drops[0])),
                "none": 1,
                "less": 0.75,
            }[room]
            largest = int(batch * factor)
            asked.append((phases, batch, largest))
        asked.append(_whole_drops(draw))
        plans = [(case, diagnosis.rows_of(ask_kept(grow, *case), len(case[0]))) for case in asked]
        report.judge(
            "g",
            (diagnosis.sgd_noise_problem(*scale) for scale in scales),
            [got for _, got in scales],
            rtol=1e-6,
        )
        rates = [[] if rows is None else [rows[:, 0], rows[:, 1] / rows[:, 2]] for _, rows in plans]
        report.judge("noise", (diagnosis.phases_problem(*plan) for plan in plans), rates, rtol=1e-6)
        batches: list[Any] = [[] if rows is None else rows[:, [0, 2]] for _, rows in plans]
        report.judge(
            "fewest", (diagnosis.fewest_problem(*plan) for plan in plans), batches, rtol=1e-6
        )


def _whole_drops(draw: np.random.Generator) -> tuple[list[tuple[float, float]], int, int]:
    """Draw a plan whose batches are whole numbers that floats make a little smaller.

    For example, 0.3 / 0.1 is 2.9999999999999996.
    """
    while True:
        batch, last, drops = (
            int(2 ** draw.integers(4, 8)),
            int(draw.integers(1, 60)) / 1000,
            draw.integers(2, 7, 2).tolist(),
        )
        rates = [round(last * drops[0] * drops[1], 3), round(last * drops[1], 3), last]
        if rates[0] < 1 and any(
            int(batch * rates[0] / rate) < round(batch * rates[0] / rate) for rate in rates
        ):
            return [(int(draw.integers(2, 9)), rate) for rate in rates], batch, batch * 40


def challenge(function: Callable[..., Any]) -> None:
    """Check `function(task)` -> weights, with 32 times the batch and the same epochs.

    The test error must not be much above the error of small batches. The check trains the small
    batch first, with the same images, starts and orders. It counts every batch of which a gradient
    is taken, whichever task it is from.
    """
    with _Check("challenge") as report:
        images = tasks.IMAGES + tasks.BATCH * int(report.rng.integers(-16, 17))
        small, reference = _small_batch(images, seed())
        large = tasks.Task(
            tasks.distorted_digits(seed(), images), FACTOR * tasks.BATCH, seed=seed()
        )
        # as given, because a learner may change the task
        batch, allowed, before = large.batch, large.steps * large.batch, len(tasks.PASSED)
        weights, error = call(function, large)
        passed = tasks.PASSED[before:]
        if error and "BudgetSpent" not in error:
            raise Stopped(error)
        problem = diagnosis.budget_problem(passed, batch, allowed, error)
        report.judge("budget", [problem], [allowed if problem is None else -1 - sum(passed)])
        if problem is None:
            _judge_accuracy(report, small, reference, weights)
        else:
            report.judge("accuracy", [diagnosis.say("over the budget")], [-1.0])


@lru_cache(maxsize=2)
def _small_batch(images: int, seed: int) -> tuple[tasks.Task, list[torch.Tensor]]:
    """The task with small batches, and the weights that it ends with.

    They are cached because a learner may need more than one attempt.
    """
    task = tasks.Task(tasks.distorted_digits(seed, images), tasks.BATCH, seed=seed)
    return task, tasks.train(task, tasks.small_rate)


def _judge_accuracy(
    report: Report, task: tasks.Task, reference: Sequence[torch.Tensor], weights: Any
) -> None:
    """Judge the weights that the learner has returned against the weights of the small batch."""
    import torch

    try:
        fit = len(weights) == 4 and all(
            w.shape == r.shape for w, r in zip(weights, reference, strict=True)
        )
    except (TypeError, AttributeError):
        fit = False
    if not fit:
        raise Stopped(MISTAKES["no weights"])
    weights = [weight.detach().double() for weight in weights]
    if not all(bool(torch.isfinite(weight).all()) for weight in weights):
        raise Stopped(MISTAKES["not finite"])
    errors, trained = (
        [task.error(tensors) for tensors in (reference, weights)],
        [task.error(tensors, train=True).mean() for tensors in (reference, weights)],
    )
    problem = diagnosis.accuracy_problem(errors[0], errors[1], MARGIN, trained)
    # the same evidence for every good enough answer, namely the highest allowed error
    report.judge(
        "accuracy",
        [problem],
        [errors[0].mean() + max(MARGIN, diagnosis.bound(errors[1] - errors[0]))],
        atol=0.2,
    )
