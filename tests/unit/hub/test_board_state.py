"""What the board makes of results.

Rows, who is stuck, the median, and what it does with results that nobody's check sends.
"""

import csv
import io
import json
from datetime import datetime

import pytest

from manyhands.hub.accounts.table import Account
from manyhands.hub.board.state import BadResultError, Board, Criterion, as_table, one_line

UNIT = "06_ddp"
CRITERIA = [
    Criterion("mean-check", "values", "gradients are means", 2),
    Criterion("mean-check", "bytes", "in one message", 1),
    Criterion("hooks-check", "order", "hooks fire once", 3),
]
PEOPLE = {
    uid: Account(name, "attendee", uid, "", "", 0.0, 2**40)
    for uid, name in enumerate(["ann", "ben", "cho", "dee", "eve"], 70_000)
}
ANN, BEN, CHO, DEE, EVE = PEOPLE


def result(states, hints=0, **more):
    """`pf-`: the first passed, the second failed, the third was not told."""
    words = {"p": "pass", "f": "fail"}
    criteria = [
        {
            "check": criterion.check,
            "name": criterion.name,
            "status": words[state],
            "message": f"{criterion.name} is wrong",
        }
        for criterion, state in zip(CRITERIA, states, strict=False)  # the last may be missing
        if state in words
    ]
    return {"unit": UNIT, "criteria": criteria, "hints": hints, **more}


@pytest.fixture
def board():
    return Board()


def take(board, uid, states, now, **more):
    return board.take(uid, UNIT, CRITERIA, result(states, **more), now)


def row_of(board, name):
    return next(row for row in board.room(UNIT, CRITERIA, PEOPLE)["rows"] if row["name"] == name)


def own(board, uid):
    return board.own(UNIT, CRITERIA, PEOPLE[uid], board.of_all(UNIT, CRITERIA, PEOPLE))


def test_a_row(board):
    take(board, BEN, "pf", 100, hints=2)
    assert row_of(board, "ben") == {
        "name": "ben",
        "full_name": "",
        "checked": 100,
        "hints": 2,
        "points": 2,
        "cells": "pf-",
        "messages": {1: "bytes is wrong"},
        "stuck": {"criterion": 1, "since": 100, "message": "bytes is wrong"},
    }
    assert row_of(board, "ann")["cells"] == "---" and row_of(board, "ann")["stuck"] is None


def test_stuck_since_the_first_failure_or_the_last_pass(board):
    since = lambda: row_of(board, "ann")["stuck"]["since"]  # noqa: E731
    take(board, ANN, "fff", 100)
    take(board, ANN, "fff", 200)
    assert since() == 100, "trying again is no progress"
    take(board, ANN, "pff", 300)
    assert since() == 300, "the second has failed since 100, but was not what they worked on"
    take(board, ANN, "pff", 400)
    take(board, ANN, "fff", 500)
    assert since() == 500, "what had passed fails again"
    take(board, ANN, "ppp", 600)
    assert row_of(board, "ann")["stuck"] is None


def test_a_notebook_that_cannot_be_graded(board):
    take(board, ANN, "pf", 100)
    for now in (200, 300):
        take(board, ANN, "", now, verdict="This is no notebook.")
    assert row_of(board, "ann")["cells"] == "pf-", "what was known stays"
    assert row_of(board, "ann")["stuck"] == {
        "criterion": None,
        "since": 200,
        "message": "This is no notebook.",
    }
    take(board, ANN, "pp", 400)
    assert row_of(board, "ann")["stuck"] is None


def test_the_room(board):
    take(board, ANN, "ppp", 100)
    take(board, BEN, "pff", 100)
    take(board, CHO, "fff", 100)
    room = board.room(UNIT, CRITERIA, PEOPLE)
    assert (room["median"], room["max"], room["checked"], room["people"], room["full"]) == (
        2,
        6,
        3,
        5,
        1,
    )
    assert [(criterion["passed"], criterion["failing"]) for criterion in room["criteria"]] == [
        (2, 1),
        (1, 2),
        (1, 2),
    ]


def test_an_attendee_sees_the_own_row_and_a_median_that_tells_of_nobody(board):
    for uid in (ANN, BEN, CHO, DEE):
        take(board, uid, "ppp", 100)
    assert own(board, ANN)["median"] is None
    take(board, EVE, "fff", 100)
    seen = own(board, EVE)
    assert seen["median"] == 6 and [row["name"] for row in seen["rows"]] == ["eve"]
    assert '"ann"' not in json.dumps(seen) and "passed" not in json.dumps(seen)


def test_one_person_does_not_decide_which_unit_is_shown(board):
    assert board.current(PEOPLE.keys()) is None
    for uid in (ANN, BEN):
        take(board, uid, "f", 100)
    board.take(CHO, "07_other", CRITERIA, result("p"), 999)
    assert board.current(PEOPLE.keys()) == UNIT and board.units(PEOPLE) == [UNIT, "07_other"]
    for uid in (ANN, BEN):
        board.take(uid, "07_other", CRITERIA, result("p"), 1000)
    assert board.current(PEOPLE.keys()) == "07_other"


def test_a_criterion_that_this_machine_cannot_check_counts_for_nothing(board):
    criteria = [*CRITERIA, Criterion("gpu-check", "speed", "on two GPUs", 4, blocked=True)]
    board.take(ANN, UNIT, criteria, result("ppp"), 100)
    room = board.room(UNIT, criteria, PEOPLE)
    assert (
        room["max"] == 6
        and room["full"] == 1
        and room["rows"][0]["cells"] == "pppb"
        and room["rows"][0]["stuck"] is None
    )


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "x",
        7,
        {},
        {"criteria": None},
        {"criteria": {}},
        {"criteria": ["x"]},
        {"criteria": [{"status": "won"}]},
        {"criteria": [{"status": ["pass"]}]},
        {"criteria": [], "hints": "many"},
        {"criteria": [], "hints": True},
        {"criteria": [], "hints": 1e300},
    ],
    ids=str,
)
def test_what_is_no_result_changes_nothing(board, wrong):
    take(board, ANN, "pf", 100)
    before = json.dumps(board.as_lines())
    with pytest.raises(BadResultError):
        board.take(ANN, UNIT, CRITERIA, wrong, 200)
    assert json.dumps(board.as_lines()) == before


def test_a_hostile_result_is_cut_to_the_units_own_criteria(board):
    for number in range(300):
        listed = [
            {
                "check": f"made-up-{number}-{position}",
                "name": "x",
                "status": "pass",
                "points": 10**9,
                "text": "<b>",
            }
            for position in range(100)
        ]
        listed.append(
            {
                "check": "mean-check",
                "name": "values",
                "status": "fail",
                "points": -5,
                "text": "mine",
                "message": "\x1b[2J<script>" + "w" * 60_000,
            }
        )
        board.take(
            ANN, UNIT, CRITERIA, {"criteria": listed, "hints": 10**12, "verdict": ["x"]}, number
        )
    row = row_of(board, "ann")
    assert row["cells"] == "f--" and row["points"] == 0 and row["hints"] == 99
    assert row["messages"][0].startswith("[2J<script>www") and len(row["messages"][0]) == 200
    assert len(json.dumps(board.as_lines())) < 600


def test_a_line_of_text():
    assert (
        one_line("a\n\tb\x1b[31m \u202ec\u200d", 20) == "a b [31m c"
        and one_line({"a": 1}, 5) == ""
        and one_line("12345678", 5) == "12..."
    )


def test_the_announcement(board):
    assert board.announce("  lunch\nat 12 ", "tea", 5) == {
        "text": "lunch at 12",
        "by": "tea",
        "when": 5,
    }
    assert board.announce(" ", "tea") is None and own(board, ANN)["announcement"] is None


def test_all_that_it_knows_survives_as_lines(board):
    take(board, ANN, "pff", 100, hints=1)
    take(board, ANN, "", 150, verdict="broken")
    board.announce("hello", "tea", 5)
    again = Board()
    for line in json.loads(json.dumps(board.as_lines())):
        again.from_line(line)
    assert again.rows == board.rows and again.announcement == board.announcement
    with pytest.raises(BadResultError):
        again.from_line({"strange": 1})


def test_a_table_without_formulas(board):
    take(board, ANN, "pf", 100)
    board.rows[UNIT][ANN].cells["mean-check/bytes"]["message"] = "=HYPERLINK(1)"
    text = io.StringIO()
    csv.writer(text).writerows(as_table(UNIT, board.room(UNIT, CRITERIA, PEOPLE), now=160))
    head, first, second = list(csv.reader(io.StringIO(text.getvalue())))[:3]
    assert dict(zip(head, first, strict=True)) == {
        "unit": UNIT,
        "name": "ann",
        "full_name": "",
        "points": "2",
        "max": "6",
        "hints": "0",
        "last_check": datetime.fromtimestamp(100).astimezone().isoformat(),
        "stuck_s": "60",
        "stuck_on": "in one message",
        "message": "'=HYPERLINK(1)",
        "mean: gradients are means": "pass",
        "mean: in one message": "fail",
        "hooks: hooks fire once": "",
    }
    assert second[1] == "ben" and second[-3:] == ["", "", ""]


def test_what_is_not_written_yet_is_not_begun_and_no_cross(board):
    criteria = [
        {"check": criterion.check, "name": criterion.name, "status": "fail", "message": message}
        for criterion, message in zip(
            CRITERIA,
            ("mean is not written yet.", "The same as above.", "Hooks fire twice."),
            strict=True,
        )
    ]
    board.take(ANN, UNIT, CRITERIA, {"unit": UNIT, "criteria": criteria, "hints": 0}, 1)
    assert row_of(board, "ann")["cells"] == "oof" and row_of(board, "ben")["cells"] == "---"
    table = list(as_table(UNIT, board.room(UNIT, CRITERIA, PEOPLE), 2))
    assert [line[-3:] for line in table if line[1] == "ann"] == [["not begun", "not begun", "fail"]]


def test_a_long_message_is_cut_between_words(board):
    criteria = [
        {
            "check": CRITERIA[0].check,
            "name": CRITERIA[0].name,
            "status": "fail",
            "message": "word " * 100,
        }
    ]
    board.take(ANN, UNIT, CRITERIA, {"unit": UNIT, "criteria": criteria, "hints": 0}, 1)
    message = row_of(board, "ann")["messages"][0]
    assert message.endswith("word word...") and len(message) <= 200
