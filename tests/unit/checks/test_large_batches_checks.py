"""Unit 17's task, with its gradients and its budget, and its checks.

Wrong schedules, steps, estimates and training runs are named.
"""

import numpy as np
import pytest

from manyhands.checks.large_batches import diagnosis, schedule_diagnosis
from manyhands.checks.large_batches import task as tasks
from manyhands.checks.large_batches.messages import CRITERIA, HINTS, MISTAKES
from manyhands.plots.large_batches import hockey_stick, hockey_table, two_clocks

CASE = (0.1, 16, "linear", 2, [4, 6], 5)  # base rate, k, rule, warm-up, drops, drop by


@pytest.fixture(scope="module")
def digits():
    return tasks.distorted_digits(3, images=96, copies=1)


# ------------------------------------------------------------------ the task


def test_gradients_are_those_of_autograd(digits):
    import torch
    from torch.nn.functional import cross_entropy

    task = tasks.Task(digits, batch=32, runs=3)
    weights, rows = task.start(), tasks.Task(digits, batch=32, runs=3)._next(32)
    got = task.gradient(weights)
    leaves = [weight.clone().requires_grad_() for weight in weights]
    scores = tasks.network(leaves, task.data.x[rows])[1]
    right = torch.autograd.grad(
        sum(cross_entropy(scores[run], task.data.y[rows[run]]) for run in range(3)), leaves
    )
    assert all(
        torch.allclose(gradient, other, rtol=1e-10, atol=1e-13)
        for gradient, other in zip(got, right, strict=True)
    )


def test_an_epoch_has_every_image_once_in_an_order_of_each_run(digits):
    task = tasks.Task(digits, batch=32, epochs=2, runs=2)
    rows = np.hstack([task._next(32).numpy() for _ in range(6)])
    for epoch in (rows[:, :96], rows[:, 96:]):
        assert (np.sort(epoch, axis=1) == np.arange(96)).all()
    assert (rows[0] != rows[1]).any() and (rows[:, :96] != rows[:, 96:]).any()


def test_the_budget_ends_and_everything_that_passes_is_counted(digits):
    task, before = tasks.Task(digits, batch=32, epochs=1, runs=1), len(tasks.PASSED)
    weights = tasks.train(task, lambda epoch: 0.1)
    assert task.seen == 96 and tasks.PASSED[before:] == [32, 32, 32]
    with pytest.raises(tasks.BudgetSpent, match="used up"):
        task.gradient(weights)
    with pytest.raises(ValueError, match="at least 32"):
        tasks.Task(digits, batch=32).gradient(weights, 16)
    assert len(tasks.PASSED) == before + 3


def test_larger_batches_may_follow_smaller_ones(digits):
    task = tasks.Task(digits, batch=16, epochs=3, runs=1)
    seen = []
    tasks.train(
        task,
        lambda epoch: 0.1,
        batch_at=lambda epoch: 16 if epoch < 1 else 48,
        watch=lambda epoch, weights: seen.append(epoch),
    )
    assert len(seen) == 6 + 4 + 1 and seen[-1] == 3


def test_the_digits_depend_on_the_seed_only():
    data, same, other = (tasks.distorted_digits(seed, images=400, copies=1) for seed in (1, 1, 2))
    assert (
        all((a == b).all() for a, b in zip(data, same, strict=True)) and (data.x != other.x).any()
    )
    assert abs(data.x.mean(0)).max() < 1e-12 and len(data.x_test) == 297


def test_an_image_that_is_not_distorted_stays():
    x = np.random.default_rng(0).random((5, 64))
    assert np.allclose(tasks.distort(x, np.random.default_rng(0), turn=0, shift=0, noise=0), x)


# ------------------------------------------------------------------ schedule


@pytest.mark.parametrize(
    "problem_of, epoch, got, says",
    [
        ("scaling", 3, 1.6, None),
        ("scaling", 3, 0.1, "base rate"),
        ("scaling", 3, 0.4, "other rule"),
        ("scaling", 3, 1.6**0.5, "the root of base"),
        ("scaling", 3, 0.1 / 16, "divided by k"),
        ("scaling", 3, 77, "not the rate"),
        ("warm_up", 1.5, 1.225, None),
        ("warm_up", 1.5, 1.6, "already the full"),
        ("warm_up", 1.5, 0.1, "jumps"),
        ("warm_up", 1.5, 1.2, "begins at zero"),
        ("warm_up", 1.5, 0.85, "every step"),
        ("warm_up", 1.5, 0.8, "same factor"),
        ("warm_up", 0, 0.0, "begins at zero"),
        ("warm_up", 0, 0.1, None),
        ("drops", 6, 0.064, None),
        ("drops", 6, 0.32, "from its epoch on"),
        ("drops", 7, 0.32, "Only one"),
        ("drops", 7, 1.6, "no longer"),
        ("drops", 7, 0.16, "twice"),
        ("drops", 7, 40.0, "multiplies"),
        ("drops", 7, float("nan"), "Return the rate"),
    ],
)
def test_a_wrong_rate_is_named(problem_of, epoch, got, says):
    warm_up = 0 if problem_of == "drops" else 2
    problem = getattr(schedule_diagnosis, problem_of + "_problem")(
        (epoch, *CASE[:3], warm_up, *CASE[4:]), got
    )
    assert problem is None if says is None else says in problem["mistake"]
    # as it can be asked again
    assert problem is None or problem["expected"].startswith(
        f"rate_at({epoch}, 0.1, 16, 'linear', {warm_up}, [4, 6], 5) -> "
    )


def test_drops_that_are_counted_from_the_end_of_the_warm_up_are_told():
    assert (
        "end of the warm-up" in schedule_diagnosis.drops_problem((6.5, *CASE), 1.6 / 5)["mistake"]
    )


# ------------------------------------------------------------------ LARS


@pytest.fixture
def layers():
    draw = np.random.default_rng(0)
    start = [
        scale * draw.normal(size=(2, *shape))
        for scale, shape in ((2.0, (3, 4)), (0.5, (1, 4)), (1.0, (4, 2)))
    ]
    return start, [
        [draw.normal(size=w.shape) * scale for w, scale in zip(start, (1, 2, 3), strict=True)]
        for _ in range(3)
    ]


@pytest.mark.parametrize(
    "name, look", [(name, look) for name, looks in diagnosis.GROUPS.items() for look in looks]
)
def test_a_wrong_lars_step_is_named(layers, name, look):
    start, gradients = layers
    if name == "zero":
        start[1][:], gradients[0][2][0] = 0, 0
    momentum, decay, count = (
        (0.7 if name == "memory" else 0.0),
        (0.0 if name == "ratio" else 0.3),
        (3 if name == "memory" else 1),
    )
    steps = [(rate, momentum, decay, 0.05) for rate in (1.0, 2.0, 0.5)[:count]]
    problem = diagnosis.lars_problem(
        name,
        start,
        gradients[:count],
        steps,
        diagnosis.lars_after(start, gradients[:count], steps, (look,)),
    )
    assert problem["mistake"] == MISTAKES[look]
    assert (
        diagnosis.lars_problem(
            name,
            start,
            gradients[:count],
            steps,
            diagnosis.lars_after(start, gradients[:count], steps),
        )
        is None
    )


def test_weights_that_stay_or_break_are_told(layers):
    start, gradients = layers
    for got, says in (
        (diagnosis.flat(start), "in place"),
        (diagnosis.flat(start) * np.nan, "not finite"),
        (np.zeros(3), "different shapes"),
    ):
        assert (
            says
            in diagnosis.lars_problem("ratio", start, gradients[:1], [(1.0, 0.0, 0.0, 0.1)], got)[
                "mistake"
            ]
        )


def test_a_lars_step_is_a_part_of_the_weights_length(layers):
    start, gradients = layers
    moved = diagnosis.lars_after(start, gradients[:1], [(1.0, 0.0, 0.0, 0.1)]) - diagnosis.flat(
        start
    )
    first = moved[: start[0].size].reshape(2, -1)
    assert np.allclose(
        np.linalg.norm(first, axis=1), 0.1 * np.linalg.norm(start[0].reshape(2, -1), axis=1)
    )


# ------------------------------------------------------------------ noise


def test_the_estimate_is_unbiased():
    """Over all batches of a small world, the estimates are exactly |G|^2 and the trace.

    The batches are drawn with replacement.
    """
    from itertools import product

    images = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, -1.0]])
    small, large = (
        np.array([np.mean(batch, axis=0) for batch in product(images, repeat=b)]) for b in (2, 4)
    )
    squared, trace, scale = diagnosis.noise_scale(small, large, 2, 4)
    assert (
        np.isclose(squared, (images.mean(0) ** 2).sum())
        and np.isclose(trace, images.var(0).sum())
        and np.isclose(scale, trace / squared)
    )


@pytest.mark.parametrize(
    "index, wrong, says",
    [
        (
            0,
            lambda few, many: diagnosis.noise_scale(
                few.mean(0, keepdims=True), many.mean(0, keepdims=True), 8, 64
            )[0],
            "averaged first",
        ),
        (0, lambda few, many: (many**2).sum(1).mean(), "still contains noise"),
        (0, lambda few, many: diagnosis.noise_scale(few, many, 64, 8)[0], "exchanged"),
        (1, lambda few, many: (few**2).sum(1).mean() - (many**2).sum(1).mean(), "divide by that"),
        (2, lambda few, many: 1 / diagnosis.noise_scale(few, many, 8, 64)[2], "upside down"),
        (
            2,
            lambda few, many: np.mean(
                [
                    diagnosis.noise_scale(a[None], b[None], 8, 64)[2]
                    for a, b in zip(few, many, strict=True)
                ]
            ),
            "mean of quotients",
        ),
        (1, lambda few, many: 12.0, "not the estimate"),
    ],
)
def test_a_wrong_estimate_is_named(index, wrong, says):
    draw = np.random.default_rng(1)
    small, large = (1 + draw.normal(size=(20, 30)) / b**0.5 * 5 for b in (8, 64))
    got = list(diagnosis.noise_scale(small, large, 8, 64))
    assert diagnosis.noise_problem(index, (small, large, 8, 64), got) is None
    got[index] = float(wrong(small, large))
    assert says in diagnosis.noise_problem(index, (small, large, 8, 64), got)["mistake"]


def test_a_wrong_number_at_the_end_is_shown(layers):
    start, gradients = layers
    steps = [(1.0, 0.0, 0.0, 0.1)]
    got = diagnosis.lars_after(start, gradients[:1], steps)
    got[-2] += 1
    problem = diagnosis.lars_problem("ratio", start, gradients[:1], steps, got)
    assert problem["got"][0] == problem["expected"][0] + 1 and len(problem["got"]) == 2


# ------------------------------------------------------------------ growing

PHASES = [(4, 0.4), (2, 0.1), (2, 0.02)]


@pytest.mark.parametrize(
    "got, says",
    [
        (None, None),
        (0.2 / 0.1 * 4.0, "N much larger"),
        (0.2 * 3, "counts 1 / (1 - m)"),
        (0.2 / 0.9 * 3, "not by m"),
        (0.2 * 0.1 * 3, "larger"),
        (9.0, "not g"),
    ],
)
def test_a_wrong_g_is_named(got, says):
    case = (0.2, 0.9, 400, 100)
    problem = diagnosis.sgd_noise_problem(case, diagnosis.sgd_noise(*case) if got is None else got)
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize(
    "largest, answer, noise, fewest",
    [
        (1000, [(4, 0.4, 16), (2, 0.4, 64), (2, 0.4, 320)], None, None),
        (100, [(4, 0.4, 16), (2, 0.4, 64), (2, 0.125, 100)], None, None),
        (1000, [(4, 0.4, 16), (2, 0.1, 64), (2, 0.02, 320)], "falls twice", None),
        (100, [(4, 0.4, 16), (2, 0.4, 64), (2, 0.4, 100)], "The rest of the drop", None),
        (1000, [(4, 0.4, 16), (2, 0.1, 16), (2, 0.02, 16)], None, "never grows"),
        (100, [(4, 0.4, 16), (2, 0.4, 64), (2, 0.02, 16)], None, "could still grow"),
        (100, [(4, 0.4, 16), (2, 0.4, 64), (2, 0.4, 320)], None, "larger than 100"),
        (1000, [(4, 0.4, 16), (2, 0.4, 16), (2, 0.4, 16)], "Neither", "never grows"),
        (1000, [(4, 0.4, 16), (2, 0.4, 32), (2, 0.4, 72)], "by the root", "more steps"),
        (1000, [(4, 0.4, 16)], "3 phases", "3 phases"),
        (1000, [(4, 0.4, 16), (8, 0.4, 64), (40, 0.4, 320)], "with the epochs", "with the epochs"),
        (1000, [(0.4, 4, 16), (1.6, 2, 64), (8, 2, 320)], "with the epochs", "with the epochs"),
        (8, [(4, 0.2, 8), (2, 0.05, 8), (2, 0.01, 8)], None, None),
        (1000, [(4, 0.2, 8.5), (2, 0.4, 64), (2, 0.4, 320)], "not what it was", "whole number"),
        (1000, [(4, 0.8, 32), (2, 0.4, 64), (2, 0.4, 320)], None, "too few steps"),
    ],
)
def test_a_wrong_growth_is_named(largest, answer, noise, fewest):
    case, rows = (PHASES, 16, largest), diagnosis.rows_of(answer, 3)
    for problem, says in (
        (diagnosis.phases_problem(case, rows), noise),
        (diagnosis.fewest_problem(case, rows), fewest),
    ):
        assert problem is None if says is None else says in problem["mistake"]


def test_the_solution_of_the_check_is_right():
    for largest in (1000, 100, 16):
        rows = diagnosis.rows_of(diagnosis.grow(PHASES, 16, largest), 3)
        assert (
            diagnosis.phases_problem((PHASES, 16, largest), rows) is None
            and diagnosis.fewest_problem((PHASES, 16, largest), rows) is None
        )


# ------------------------------------------------------------------ the challenge


def test_the_points_of_student_are_right():
    from scipy.stats import t

    assert all(
        abs(t.ppf(0.95, freedom) - point) < 6e-4 for freedom, point in diagnosis.T_95.items()
    )
    assert np.isclose(
        diagnosis.bound([1.0, 2.0, 3.0, 2.0, 2.0]),
        2 + 2.132 * np.std([1, 2, 3, 2, 2], ddof=1) / 5**0.5,
    )


@pytest.mark.parametrize(
    "passed, error, says",
    [
        ([256] * 4, None, None),
        ([256] * 3, None, None),
        ([256] * 5, None, "More images"),
        ([256, 128], None, "smaller batch"),
        ([256] * 4, "BudgetSpent: used up", "only 4 steps"),
        ([], None, "task.gradient"),
    ],
)
def test_a_budget_that_is_not_kept_is_told(passed, error, says):
    problem = diagnosis.budget_problem(passed, 256, 1024, error)
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize(
    "worse, trained, says",
    [
        (0.5, (20, 20), None),
        (30, (20, 50), "not learned yet"),
        (3, (20, 20), "Try a different"),
        (80, (20, 90), "random"),
    ],
)
def test_an_accuracy_that_is_too_low_is_told(worse, trained, says):
    small = np.linspace(15, 17, 8)
    problem = diagnosis.accuracy_problem(
        small, small + worse + np.array([0.1, -0.1] * 4), 2.0, trained
    )
    assert problem is None if says is None else says in problem["mistake"]


def test_every_check_has_a_hint_and_every_mistake_its_words():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())


# ------------------------------------------------------------------ the pictures


def test_the_pictures_show_the_numbers_and_are_the_same_twice():
    own, published = (
        {"linear": {8: (16.0, 0.8), 256: (16.5, 1.0)}, "same rate": {256: (37.0, 2.0)}},
        {"linear": {8192: (24.84, 0.37)}},
    )
    one, two = (hockey_stick(own, published, "Goyal et al. 2017").text for _ in range(2))
    assert one == two and all(
        word in one for word in ("same rate", "published: Goyal et al. 2017", "8k", "256")
    )
    table = hockey_table(own).splitlines()
    assert (
        table[0].split() == ["batch", "8", "256"]
        and table[1].split() == ["linear", "16.0", "±", "0.8", "16.5", "±", "1.0"]
        and "37.0" in table[2]
    )
    assert (
        "batch grows"
        in two_clocks(
            {
                "rate falls": [(0, 0, 90.0), (1, 512, 20.0)],
                "batch grows": [(0, 0, 90.0), (1, 128, 21.0)],
            }
        ).text
    )
