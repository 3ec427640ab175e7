"""Checks of unit 17, large batches: everything runs in the notebook's own kernel, several runs of one small network side by side.

Rates, layers, gradients, digits and starts are drawn from the seed. The challenge counts the images of every gradient as they pass, trains the small batch
itself, under the same seed, and compares the two by Student's t. A mistake of the learner, an exception too, becomes a FAIL line.
"""

from functools import lru_cache

import numpy as np

from manyhands.checks import seed
from manyhands.checks.in_kernel import KernelReport, array, call, number
from manyhands.checks.large_batches import task as tasks
from manyhands.checks.large_batches import verdicts
from manyhands.checks.large_batches.words import HINTS, MISTAKES, TEXTS

__all__ = ["HINTS", "challenge", "growing", "lars", "noise", "schedule"]

FACTOR, MARGIN = 32, 3.5  # times the batch; points of error


class _Check(KernelReport):
    """The report of this unit: with a generator of its own, which the seed and its name make."""

    def __init__(self, name, **points):
        super().__init__(name, {key: text.format(margin=MARGIN) for key, text in TEXTS.items()}, **points)
        self.rng = np.random.default_rng([seed() % 2**32, *name.encode()])


def schedule(function):
    """Check `function(epoch, base_rate, k, rule, warm_up, drops, drop_by)`: the rate of the step that begins then."""
    report = _Check("schedule", **{"scaling": 1, "warm-up": 1, "drops": 1})
    draw, found = report.rng, {"scaling": [], "warm-up": [], "drops": []}
    for rule in ("linear", "square root"):
        for warm_up in (0, int(draw.integers(2, 5)), draw.integers(5, 12) / 4):
            first = int(np.ceil(warm_up)) + int(draw.integers(2, 4))
            drops = [first, first + int(draw.integers(2, 4)), first + 5]
            case = (round(draw.uniform(0.01, 0.2), 3), int(draw.integers(3, 65)), rule, warm_up, drops, int(draw.choice([2, 5, 10])))
            probes = {"scaling": [warm_up, first - 0.25], "drops": [first, drops[2] + 1.5, drops[1] - 0.25, drops[1]],
                      "warm-up": [warm_up * 0.875, 0.0, warm_up * 0.3] if warm_up else []}
            for name, epochs in probes.items():
                for epoch in epochs:
                    answer, error = call(function, epoch, *case[:4], list(drops), case[5])
                    if error:
                        return report.fail_all(error)
                    found[name].append(((epoch, *case), number(answer)))
    problem_of = {"scaling": verdicts.scaling_problem, "warm-up": verdicts.warm_up_problem, "drops": verdicts.drops_problem}
    for name, cases in found.items():
        report.judge(name, [problem_of[name](*one) for one in cases], [got for _, got in cases], rtol=1e-6)
    report.show()


def lars(function):
    """Check `function(weights, gradients, memory, rate, momentum, decay, trust)`: tensors [runs, ...] for each layer, changed in place."""
    import torch

    report = _Check("lars", ratio=1, decay=1, memory=1, zero=1)
    draw, runs, (a, b) = report.rng, int(report.rng.integers(2, 5)), report.rng.integers(3, 7, 2)
    for name in report.points:
        start = [draw.uniform(0.2, 3, (runs, 1, 1)) * draw.normal(size=(runs, *shape)) for shape in ((a, b), (1, b), (b, 2))]
        count, decay = (3 if name == "memory" else 1), (0.0 if name == "ratio" else draw.uniform(0.1, 0.5))
        gradients = [[draw.uniform(0.05, 2, (runs, 1, 1)) * draw.normal(size=w.shape) for w in start] for _ in range(count)]
        if name == "zero":
            start[1][:], gradients[0][2][0] = 0, 0
        steps = [(draw.uniform(0.5, 3), 0.9 if name == "memory" else 0.0, decay, draw.uniform(0.01, 0.2)) for _ in range(count)]
        weights = [torch.from_numpy(w.copy()) for w in start]
        memory = [torch.zeros_like(w) for w in weights]
        for these, numbers in zip(gradients, steps):
            _, error = call(function, weights, [torch.from_numpy(g.copy()) for g in these], memory, *map(float, numbers))
            if error:
                return report.fail_all(error)
        got = verdicts.flat([array(w) for w in weights])
        report.judge(name, [verdicts.lars_problem(name, start, gradients, steps, got)], got, rtol=1e-6, atol=1e-9)
    report.show()


def noise(function):
    """Check `function(small, large, b_small, b_large)` -> (|G|^2, trace, their quotient), for gradients [batches, numbers] of two batch sizes."""
    import torch

    report, found = _Check("noise", squared=1, trace=1, scale=1), []
    draw = report.rng
    for n, m in ((48, 48), (64, 24), (32, 32)):
        numbers, b_small, b_large = int(draw.integers(30, 60)), int(draw.integers(8, 20)), int(draw.integers(100, 400))
        truth = draw.normal(size=numbers)
        deviation = draw.uniform(0.5, 1.5, numbers) * draw.uniform(4, 10)  # of one image's gradient
        small, large = (truth + deviation / size ** 0.5 * draw.normal(size=(count, numbers)) for count, size in ((n, b_small), (m, b_large)))
        answer, error = call(function, torch.from_numpy(small.copy()), torch.from_numpy(large.copy()), b_small, b_large)
        if error:
            return report.fail_all(error)
        found.append(((small, large, b_small, b_large), verdicts.three(answer)))
    for index, name in enumerate(report.points):
        report.judge(name, [verdicts.noise_problem(index, *one) for one in found], [got[index] for _, got in found], rtol=1e-6)
    report.show()


def growing(sgd_noise, grow):
    """Check `sgd_noise(rate, momentum, images, batch)`, and `grow(phases, batch, largest)` -> [(epochs, rate, batch)]."""
    report = _Check("growing", g=1, noise=1, fewest=1)
    draw, scales, plans = report.rng, [], []
    for _ in range(4):
        batch = int(2 ** draw.integers(4, 9))
        case = (round(draw.uniform(0.01, 0.5), 3), round(draw.uniform(0.3, 0.95), 2), batch * int(draw.integers(2, 30)), batch)
        answer, error = call(sgd_noise, *case)
        if error:
            return report.fail_all(error)
        scales.append((case, number(answer)))
    for room in ("enough", "some", "none"):
        batch, rate, drops = int(2 ** draw.integers(4, 8)), round(draw.uniform(0.05, 0.5), 3), [int(draw.choice([2, 4, 5])) for _ in range(2)]
        phases = [(int(draw.integers(2, 9)), rate / drop) for drop in (1, drops[0], drops[0] * drops[1])]
        largest = batch * {"enough": drops[0] * drops[1] * 2, "some": drops[0] * drops[1] - int(draw.integers(1, drops[0])), "none": 1}[room]
        answer, error = call(grow, list(phases), batch, largest)
        if error:
            return report.fail_all(error)
        plans.append(((phases, batch, largest), verdicts.rows_of(answer, 3)))
    report.judge("g", [verdicts.sgd_noise_problem(*one) for one in scales], [got for _, got in scales], rtol=1e-6)
    values = {"noise": [[] if rows is None else rows[:, 1] / rows[:, 2] for _, rows in plans], "fewest": [[] if rows is None else rows[:, 2] for _, rows in plans]}
    for name, problem_of in (("noise", verdicts.phases_problem), ("fewest", verdicts.fewest_problem)):
        report.judge(name, [problem_of(*one) for one in plans], values[name], rtol=1e-6)
    report.show()


def challenge(function):
    """Check `function(task)` -> weights: 32 times the batch, the same epochs, and a test error that is not much above that of small batches.

    The check trains the small batch first, with the same images, starts and orders. Every batch of which a gradient is taken counts, of whatever task.
    """
    report = _Check("challenge", budget=1, accuracy=4)
    images = tasks.IMAGES + tasks.BATCH * int(report.rng.integers(-16, 17))
    small, reference = _small_batch(images, seed())
    large = tasks.Task(tasks.distorted_digits(seed(), images), FACTOR * tasks.BATCH, seed=seed())
    allowed, before = large.steps * large.batch, len(tasks.PASSED)
    weights, error = call(function, large)
    passed = tasks.PASSED[before:]
    if error and "BudgetSpent" not in error:
        return report.fail_all(error)
    problem = verdicts.budget_problem(passed, large.batch, allowed, error)
    report.judge("budget", [problem], [allowed if problem is None else -1 - sum(passed)])
    _accuracy(report, small, reference, weights)
    report.show()


@lru_cache(maxsize=2)
def _small_batch(images, seed):
    """The task with small batches, and the weights that it ends with. Kept: a learner may need more than one attempt."""
    task = tasks.Task(tasks.distorted_digits(seed, images), tasks.BATCH, seed=seed)
    return task, tasks.train(task, tasks.small_rate)


def _accuracy(report, task, reference, weights):
    """Judge the weights that the learner has returned, against those of the small batch."""
    import torch

    try:
        fit = len(weights) == 4 and all(w.shape == r.shape for w, r in zip(weights, reference))
    except (TypeError, AttributeError):
        fit = False
    if not fit:
        return report.judge("accuracy", [{"mistake": MISTAKES["no weights"]}], [])
    weights = [weight.detach().double() for weight in weights]
    if not all(bool(torch.isfinite(weight).all()) for weight in weights):
        return report.judge("accuracy", [{"mistake": MISTAKES["not finite"]}], [])
    errors, trained = [task.error(one) for one in (reference, weights)], [task.error(one, train=True).mean() for one in (reference, weights)]
    problem = verdicts.accuracy_problem(*errors, MARGIN, trained)
    # the same for all that is good enough: the highest error that is
    return report.judge("accuracy", [problem], [errors[0].mean() + max(MARGIN, verdicts.bound(errors[1] - errors[0]))], atol=0.2)
