"""Unit 10: how wrong diagnoses, checkpoints, weights, epochs and files are named."""

import pytest

from manyhands.checks.horovod import diagnosis
from manyhands.checks.horovod.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.report import Stopped

SYMPTOMS = {
    "apart_at_start": 0.0,
    "apart_at_end": 1.5,
    "rows_counted": 12,
    "rows_there": 12,
    "writers": 1,
}


@pytest.mark.parametrize("missing", diagnosis.ANSWERS)
def test_a_wrong_diagnosis_is_answered_with_what_the_numbers_say(missing):
    assert diagnosis.diagnosis_problem(missing, SYMPTOMS, diagnosis.ANSWERS[missing]) is None
    wrong = diagnosis.diagnosis_problem(missing, SYMPTOMS, "rows" if missing != "rows" else "start")
    assert (
        MISTAKES["diagnosis", missing] in wrong["mistake"]
        and "apart_at_end 1.5" in wrong["mistake"]
    )
    assert (
        "one of nothing, start"
        in diagnosis.diagnosis_problem(missing, SYMPTOMS, "broadcast")["mistake"]
    )


def unwritten(symptoms):
    raise NotImplementedError


def spoils(symptoms):
    symptoms.clear()
    return 3


def test_diagnose_may_do_anything():
    with pytest.raises(Stopped, match="diagnose is not written yet."):
        diagnosis.ask(unwritten, [SYMPTOMS])
    with pytest.raises(Stopped, match="KeyError"):
        diagnosis.ask(lambda symptoms: symptoms["far"], [SYMPTOMS])
    assert diagnosis.ask(spoils, [SYMPTOMS]) == ["3"] and SYMPTOMS["writers"] == 1


def resumed(**changes):
    return {
        "looks": None,
        "state": [1.0],
        "right": [1.0],
        "momenta": [0.5],
        "right momenta": [0.5],
        "settings": [[0.1, 0.9]],
        "right settings": [0.1, 0.9],
        "returned": 7,
        "step": 7,
        **changes,
    }


@pytest.mark.parametrize(
    "name, changes, says",
    [
        ("weights", {}, None),
        ("weights", {"looks": "stepped"}, "after it"),
        ("weights", {"looks": "buffers"}, "named parameters"),
        ("weights", {"looks": "own"}, "its own weights"),
        ("optimiser", {}, None),
        ("optimiser", {"momenta": [0.0]}, "no momentum"),
        ("optimiser", {"momenta": [0.4]}, "not the checkpoint's"),
        ("optimiser", {"settings": [[0.2, 0.9]]}, "learning rate"),
        ("optimiser", {"settings": [[0.1, 0.9], [0.2, 0.9]]}, "learning rate"),
        ("optimiser", {"settings": [[0.1, 0.8]]}, "all settings"),
        ("step", {}, None),
        ("step", {"returned": 0}, "different times"),
        ("step", {"returned": "7.0"}, "a whole number"),
        ("step", {"returned": True}, "different times"),
    ],
)
def test_what_was_not_resumed_is_named(name, changes, says):
    problem = diagnosis.RESUMED[name](2, resumed(**changes))
    assert problem is None if says is None else says in problem["mistake"] and problem["rank"] == 2


@pytest.mark.parametrize("looks", [key[1] for key in MISTAKES if key[0] == "fit"])
def test_every_wrong_training_has_its_text(looks):
    case = {"got": [1.0], "right": [2.0], "sizes": [5, 2, 1], "looks": looks}
    assert "{" not in diagnosis.fit_problem(0, case)["mistake"]
    assert diagnosis.fit_problem(0, {**case, "looks": None}) is None


def epoch(*ranks, second=None, again=None, n=7, rates=(0.2, 0.2), order=range(7), reseeded=False):
    """A case of two ranks, steps of 1 row; n = 7: three whole steps.

    `order` is what the first epoch should have, and 6 less it the second.
    """
    first = [[[row] for row in rows] for rows in ranks]
    other = [[[6 - row] for row in rows] for rows in ranks] if second is None else second
    return {
        "n": n,
        "rows": 1,
        "p": 2,
        "base": 0.1,
        "orders": [first, other, first if again is None else again],
        "rates": [list(rates)] * 2,
        "right orders": [list(order), [6 - row for row in order], list(order)],
        "reseeded": [False, reseeded],
    }


@pytest.mark.parametrize(
    "case, once, steps",
    [
        (epoch([0, 1, 2], [3, 4, 5]), None, None),
        (epoch([0, 1, 2], [2, 4, 5]), "more than once", None),
        (epoch([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]), "goes through all", "too many"),
        (epoch([0, 1], [3, 4]), "rows must be taken", "too few"),
        (epoch([0, 1, 2, 3], [4, 5, 6]), "rows must be taken", "waits forever"),
        (epoch([0, 1, 7], [3, 4, 5]), "not among the 7", None),
        (
            epoch([0, 1, 2], [3, 4, 5], second=[[[0], [1], [2]], [[3], [4], [5]]]),
            "same in every epoch",
            None,
        ),
        (
            epoch([0, 1, 2], [3, 4, 5], again=[[[1], [0], [2]], [[3], [4], [5]]]),
            "two different orders",
            None,
        ),
        (epoch([0, 1, 2], [3, 4, 5], order=[1, 0, 2, 3, 4, 5, 6]), "do not follow the order", None),
        (epoch([3, 1, 2], [0, 4, 5], order=[3, 0, 1, 4, 2, 5, 6]), None, None),
        (epoch([0, 1, 2], [3, 4, 5], reseeded=True), "own generator", None),
    ],
)
def test_a_wrong_epoch_is_named(case, once, steps):
    for name, says in (("once", once), ("steps", steps)):
        problem = diagnosis.EPOCH[name](case)
        assert (
            problem is None
            if says is None
            else says in problem["mistake"] and "{" not in problem["mistake"]
        )


def test_steps_of_another_size_are_named():
    case = {**epoch([0, 1, 2], [3, 4, 5]), "rows": 2, "n": 13}
    assert "2 rows on every rank" in diagnosis.EPOCH["steps"](case)["mistake"]


def test_one_step_of_no_rows_is_told_from_none():
    case = {**epoch([], [], n=1), "orders": [[[[]], [[]]]] * 3}
    assert (
        "split of an empty tensor gives one empty part" in diagnosis.EPOCH["steps"](case)["mistake"]
    )


@pytest.mark.parametrize(
    "rate, says",
    [(0.2, None), (0.1, "hvd.size()"), (0.1 * 2**0.5, "square root"), (0.3, "base_rate * 2")],
)
def test_a_wrong_rate_is_named(rate, says):
    problem = diagnosis.EPOCH["rate"](epoch([0], [1], rates=[rate] * 2))
    assert problem is None if says is None else says in problem["mistake"]


def test_the_cases_of_all_ranks_are_joined():
    ranks = [
        {"n": 4, "orders": [[[r]], [[r + 2]]], "rates": [0.1 * r], "reseeded": r == 1}
        for r in range(2)
    ]
    assert diagnosis.joined(ranks) == {
        "n": 4,
        "orders": [[[[0]], [[1]]], [[[2]], [[3]]]],
        "rates": [[0.0], [0.1]],
        "reseeded": [False, True],
    }


def end(*wrote, loss=2.0, returned=(2.0, 2.0, 2.0), weights=(1.0,)):
    return [
        {
            "losses": [1.0, 2.0, 3.0],
            "wrote": rank in wrote,
            "loss": loss if rank in wrote else None,
            "weights": list(weights),
            "right weights": [1.0],
            "returned": number,
            "tensor": False,
        }
        for rank, number in enumerate(returned)
    ]


@pytest.mark.parametrize(
    "answers, says",
    [
        (end(0), None),
        (end(), "No rank"),
        (end(0, 1, 2), "All ranks"),
        (end(0, 2), "once on every node"),
        (end(1), "other than 0"),
        (end(0, loss=1.0), "rank 0's own loss"),
        (end(0, loss=6.0), "not the mean"),
        (end(0, weights=(2.0,)), "without changing it"),
        (end(0, weights=(1.0, 2.0)), "must hold"),
    ],
)
def test_a_wrong_file_is_named(answers, says):
    problem = diagnosis.file_problem(answers)
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize(
    "returned, says",
    [
        (2.0, None),
        (3.0, "rank's own"),
        (1.0, "broadcast, not averaged"),
        (6.0, "sum over"),
        (2.5, "not the mean"),
        (None, "one number"),
    ],
)
def test_a_wrong_loss_is_named(returned, says):
    answers = end(0, returned=(2.0, 2.0, returned))
    problem = diagnosis.loss_problem(2, answers[2], answers)
    assert problem is None if says is None else says in problem["mistake"]


def test_a_tensor_is_no_number():
    case = {**end(0)[1], "returned": None, "tensor": True}
    assert ".item()" in diagnosis.loss_problem(1, case, [case])["mistake"]


def test_the_largest_loss_is_not_taken_for_a_ranks_own():
    answers = end(0, returned=(3.0, 3.0, 3.0))
    assert "not the mean" in diagnosis.loss_problem(2, answers[2], answers)["mistake"]


def test_every_check_has_a_hint():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())
