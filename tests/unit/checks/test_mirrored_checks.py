"""Unit 02: how wrong steps, cut models and fine-tuned models are named; without TensorFlow."""

import numpy as np
import pytest

from manyhands.checks.mirrored_strategy import diagnosis, model_diagnosis
from manyhands.checks.mirrored_strategy.messages import CRITERIA, HINTS, MISTAKES


def test_every_check_has_a_hint_of_two_steps():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(len(steps) == 2 and all(steps) for steps in HINTS.values()) and all(
        MISTAKES.values()
    )


def test_a_right_update_by_a_wrong_gradient_is_not_blamed():
    right = np.array([1.0, -2.0])
    assert diagnosis.update(-right, -right, -right) is None
    assert (
        "for the gradient that you return"
        in diagnosis.update(-2 * right, -right, -2 * right)["mistake"]
    )
    assert "2 times as far" in diagnosis.update(-2 * right, -right, -right)["mistake"]


@pytest.mark.parametrize(
    "forward, backward, says",
    [
        ([0, 1, 1], [0, 1, 1], None),
        ([0, 1], [0, 1], "called 2 times"),
        ([0, 0, 1], [0, 0, 1], "weights of layer 1 are on device 0"),
        (
            [0, 1, 1],
            [0, 0, 1],
            (
                "backward pass of layer 1 ran on device 0 and not on device 1, where the list of "
                "devices is 0, 1"
            ),
        ),
    ],
)
def test_a_layer_on_another_device_is_told(forward, backward, says):
    ledger = model_diagnosis.LayerLedger.__new__(model_diagnosis.LayerLedger)
    ledger.places, ledger.devices = [("CPU", 0), ("CPU", 1), ("CPU", 1)], [("CPU", 0), ("CPU", 1)]
    ledger.forward = [(("CPU", i), ("CPU", i)) for i in forward]
    ledger.backward = {number: ("CPU", i) for number, i in enumerate(backward)}
    problem = model_diagnosis.layers(ledger)
    assert problem is None if says is None else says in problem["mistake"]


def test_right_gradients_count_once_a_layer_has_moved():
    ledger = model_diagnosis.LayerLedger.__new__(model_diagnosis.LayerLedger)
    ledger.devices = [("CPU", 2), ("CPU", 0)]
    ledger.places = [("CPU", 2), ("CPU", 2), ("CPU", 0), ("CPU", 0)]
    ledger.forward, ledger.backward = (
        [(("CPU", i), ("CPU", i)) for i in (2, 0, 2, 0)],
        dict.fromkeys(range(4), ("CPU", 0)),
    )
    assert ledger.as_given()
    ledger.forward = [(place, place) for place in ledger.places]
    assert not ledger.as_given()
    right = [np.ones((2, 2))]
    assert model_diagnosis.layer_gradients(right, right, False) is None
    assert (
        "still runs where it ran there"
        in model_diagnosis.layer_gradients(right, right, True)["mistake"]
    )


def test_a_rate_in_the_gradient_and_another_loss_are_told_as_what_they_are():
    right, cuts = np.array([1.0, -2.0]), diagnosis.shards(5, 2)
    parts = [right + 0.3, right - 0.2]
    assert (
        "learning_rate times"
        in diagnosis.average("gradient", 0.25 * right, right, parts, cuts, 5, rate=0.25)["mistake"]
    )
    assert (
        "the mean loss over the whole batch gives"
        in diagnosis.average("gradient", 0.25 * right, right, parts, cuts, 5, rate=0.5)["mistake"]
    )
    one_step = diagnosis.Epoch(
        np.ones((4, 2)),
        np.zeros(4, int),
        np.zeros((2, 2)),
        2,
        4,
        0.1,
        lambda w, x, y: 0.7,
        lambda w, x, y: w,
    )
    assert (
        "the mean loss over the whole batch gives"
        in one_step.losses_problem(np.array([0.9]))["mistake"]
    )


def case_and_answer(**other):
    case = model_diagnosis.FineTuning(np.random.default_rng(3), 3)
    weights, accuracies = case.alone(
        other.get("batch", 3 * case.own_batch), other.get("rate", 3 * case.rate)
    )
    return case, [*case.start[:-2], weights[:-1], weights[-1]], accuracies


@pytest.mark.parametrize(
    "change, says",
    [
        (None, None),
        ("rate", "the one for a single replica"),
        ("batch", "is the global batch"),
        ("first", "has moved"),
        ("still", "has not moved"),
        ("accuracies", "history.history"),
        ("copies", "made outside"),
    ],
)
def test_a_wrong_fine_tuning_is_named(change, says):
    case, weights, accuracies = case_and_answer()
    if change == "rate":
        _, weights, accuracies = case_and_answer(rate=case.rate)
    elif change == "batch":
        _, weights, accuracies = case_and_answer(batch=case.own_batch)
    elif change == "first":
        weights[0] = weights[0] + 1
    elif change == "still":
        weights = case.start
    elif change == "accuracies":
        accuracies = accuracies[:1]
    variable = type("Variable", (), {"name": "kernel"})
    problem = model_diagnosis._fine_tuned_problem(
        case, [variable], [1 if change == "copies" else 3], weights, accuracies
    )
    assert problem is None if says is None else says in problem["mistake"]
