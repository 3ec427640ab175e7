"""Unit 01: how wrong rows, gradients, shares and steps are named."""

import pytest

from manyhands.checks.data_parallel import diagnosis
from manyhands.checks.data_parallel.messages import CRITERIA, HINTS, MISTAKES


@pytest.mark.parametrize(
    "got, cover, even",
    [
        ([[0, 1, 2], [3, 4], [5, 6]], None, None),
        ([[0, 1], [2, 3], [4, 5]], "belong to none", "do not contain exactly 7 rows"),
        ([[0, 1], [2, 3], [4, 5, 6]], None, "larger shards must come first"),
        ([[0, 1, 2], [2, 3, 4], [5, 6]], "belong to two", "do not contain exactly 7 rows"),
        ([[0, 3, 6], [1, 4], [2, 5]], "in turn", None),
        ([[0, 1, 2], [3, 4, 5], [6]], None, "rounded up"),
        ([[0, 1, 2, 3, 4], [5], [6]], None, "too many of the 7 rows"),
    ],
)
def test_wrong_rows_are_named(got, cover, even):
    case = {"n": 7, "world_size": 3, "got": got, "odd": None, "borrowed": None}
    for problem, says in (
        (diagnosis.cover_problem(case), cover),
        (diagnosis.even_problem(case), even),
    ):
        assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize(
    "odd, borrowed, says",
    [
        ("NoneType", None, "a `return`"),
        ("tuple", None, "returns tuple"),
        (None, "manyhands.data.shard", "the package has"),
    ],
)
def test_what_is_no_slice_of_the_learners_own_is_told(odd, borrowed, says):
    case = {"n": 7, "world_size": 3, "got": [[], [], []], "odd": odd, "borrowed": borrowed}
    assert (
        says in diagnosis.cover_problem(case)["mistake"]
        and says in diagnosis.even_problem(case)["mistake"]
    )


def gradients(**looks):
    return {
        "members": [0, 1, 2],
        "frozen": [],
        "gradients": {
            name: {"got": [1.0], "right": [2.0], "looks": mistake}
            for name, mistake in looks.items()
        },
    }


@pytest.mark.parametrize(
    "looks, says",
    [
        (None, None),
        ("mean", "too small"),
        ("own", "own gradient"),
        ("none", "no gradient"),
        ("other", "same order"),
        ("summed again", "two names"),
        ("not finite", "not finite"),
        ("own divided", "divided"),
        ("rounded", "float64"),
    ],
)
def test_a_wrong_gradient_is_named(looks, says):
    problem = diagnosis.gradient_problem(1, gradients(**{"head.bias": None, "a.weight": looks}))
    assert problem is None if says is None else says in problem["mistake"]


def test_the_tied_weight_is_told_before_others_and_a_frozen_one_before_all():
    case = gradients(**{"head.bias": "mean", "a.weight": "summed again"})
    assert "two names" in diagnosis.gradient_problem(0, case)["mistake"]
    assert (
        "first.weight is frozen"
        in diagnosis.gradient_problem(0, {**case, "frozen": ["first.weight"]})["mistake"]
    )


def test_a_missing_gradient_is_told_where_nothing_else_is_wrong():
    assert (
        "take part with zeros"
        in diagnosis.missing_problem(0, gradients(**{"a.weight": None, "spare.weight": "other"}))[
            "mistake"
        ]
    )
    for spare in (None, "mean"):
        assert (
            "take part with zeros"
            not in diagnosis.missing_problem(
                0, gradients(**{"a.weight": "mean", "spare.weight": spare})
            )["mistake"]
        )


def test_an_all_reduce_that_nobody_waited_for_is_told():
    case = {**gradients(**{"a.weight": "own"}), "not waited": 7}
    assert (
        "7 of the calls" in diagnosis.gradient_problem(0, case)["mistake"]
        and "wait()" in diagnosis.gradient_problem(0, case)["mistake"]
    )


def test_a_share_whose_value_alone_is_right_is_told_so():
    case = {
        "sizes": [3, 2],
        "decay": 0.1,
        "value": 2.0,
        "serial": 2.0,
        "looks": "other",
        "gradient": [1.0],
        "serial gradient": [3.0],
    }
    problem = diagnosis.share_problem([case])
    assert "value is right" in problem["mistake"] and (problem["expected"], problem["got"]) == (
        [3.0],
        [1.0],
    )


@pytest.mark.parametrize(
    "sent, says", [(40, None), (44, None), (60, "do not gather"), (0, "takes 40")]
)
def test_bytes_are_counted_over_the_group(sent, says):
    answers = [[{"members": [0, 1, 2], "size": 10, "sent": sent / 3}] for _ in range(3)]
    ((case, total),) = diagnosis.sent_by_group(answers)
    problem = diagnosis.bytes_problem(case, total)
    assert problem is None if says is None else says in problem["mistake"]
    assert (diagnosis.bytes_evidence(case, total) == 40) is (says is None)


@pytest.mark.parametrize("looks", [key[1] for key in MISTAKES if key[0] == "share"])
def test_every_wrong_share_has_its_text(looks):
    problem = diagnosis.share_problem(
        [{"sizes": [3, 2, 0], "decay": 0.1, "value": 1.0, "serial": 2.0, "looks": looks}]
    )
    assert problem["mistake"] and "{" not in problem["mistake"]


def test_a_share_that_another_rank_has_otherwise_asks_for_its_rank():
    right = {"sizes": [3, 2], "decay": 0.1, "value": 2.0, "serial": 2.0, "looks": None}
    problem = diagnosis.share_problem([right, {**right, "value": 1.0, "looks": "no decay"}])
    assert "which rank it is on" in problem["mistake"] and problem["got"] == [2.0, 1.0]
    assert diagnosis.share_problem([right, right]) is None
    assert (
        "no tensor"
        not in diagnosis.share_problem(
            [{**right, "value": None, "serial": None, "looks": "nothing"}] * 2
        )["mistake"]
    )


@pytest.mark.parametrize(
    "looks",
    [
        key[1]
        for key in MISTAKES
        if key[0] == "step" and key[1] not in ("frozen moved", "whole batch")
    ],
)
def test_every_wrong_step_has_its_text(looks):
    case = {
        "members": [1, 3],
        "frozen": True,
        "got": [1.0],
        "right": [2.0],
        "looks": looks,
        "beyond": [0, 0, 0],
    }
    assert "{" not in diagnosis.weights_problem(1, case)["mistake"]
    assert diagnosis.weights_problem(1, {**case, "looks": None}) is None
    assert (
        "whole batch"
        in diagnosis.weights_problem(1, {**case, "looks": None, "beyond": [2, 0, 3]})["mistake"]
    )
    assert "has moved" in diagnosis.weights_problem(1, {**case, "frozen": False})["mistake"]


def test_ranks_with_weights_of_their_own_are_told_so():
    case = {
        "members": [1, 3],
        "frozen": True,
        "right": [2.0],
        "looks": "other",
        "beyond": [0, 0, 0],
    }
    alike, apart = ([[{**case, "got": [1.0]}], [{**case, "got": [other]}]] for other in (1.0, 1.5))
    assert not diagnosis.groups_apart(alike) and diagnosis.groups_apart(apart) == {(1, 3)}
    for answers, says in (
        (alike, "must be counted in the group"),
        (apart, "have different weights"),
    ):
        assert (
            says
            in diagnosis.weights_problem(1, answers[0][0], diagnosis.groups_apart(answers))[
                "mistake"
            ]
        )


@pytest.mark.parametrize(
    "reported, says",
    [
        ([1.0, 2.0], None),
        ([1.0, 2.1], "a part of it"),
        ([None, 2.0], "one number"),
        ([float("nan"), 2.0], "a part of it"),
    ],
)
def test_a_wrong_objective_is_told(reported, says):
    problem = diagnosis.objective_problem(0, {"reported": reported, "objectives": [1.0, 2.0]})
    assert problem is None if says is None else says in problem["mistake"]


def test_an_objective_that_follows_from_wrong_weights_is_told_so():
    case = {"reported": [1.0, 2.1], "objectives": [1.0, 2.0], "looks": "other"}
    assert "the criterion above" in diagnosis.objective_problem(0, case)["mistake"]
    assert (
        "a part of it"
        in diagnosis.objective_problem(0, {**case, "reported": [1.1, 2.0]})["mistake"]
    )


def test_every_check_has_a_hint():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())
