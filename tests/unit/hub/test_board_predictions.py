"""The class's predictions on the board.

What is counted, what is shown before and after the reveal, and to whom.
"""

import asyncio
import json
from types import SimpleNamespace

import nbformat
import pytest
from tornado.httpclient import AsyncHTTPClient

from board_alone import pages, write_accounts
from manyhands.hub.board import service as service_module
from manyhands.hub.board.files import NAME
from manyhands.hub.board.prediction_state import MOST_BARS, Predictions
from manyhands.hub.board.service import Door, Service
from manyhands.learner import predictions
from manyhands.learner.questions import Question
from manyhands.shared import hub_client

APART = Question("06-apart", "Do the models come closer?", ("closer", "further apart", "neither"))
MESSAGES = Question("06-messages", "How many messages?", unit="messages")
PEOPLE = {uid: SimpleNamespace(name=f"hand{uid}") for uid in range(1, 6)}
TEACHER = 9


def room(question, guesses, came=()):
    predictions = Predictions()
    for uid, guess in guesses.items():
        predictions.take(uid, question, {"prediction": question.name, "guess": guess})
    for uid, value in dict(came).items():
        predictions.take(uid, question, {"prediction": question.name, "came": value})
    return predictions


def counts(shown):
    return {bar["label"]: bar["count"] for bar in shown["bars"]}


def test_before_the_reveal_only_counts_are_told():
    predictions = room(
        APART, {1: "closer", 2: "closer", 3: "neither", TEACHER: "closer"}, {1: "neither"}
    )
    shown = predictions.histogram(APART, PEOPLE, {TEACHER})
    assert counts(shown) == {"closer": 2, "further apart": 0, "neither": 1}
    assert (shown["predicted"], shown["people"], shown["came"], shown["right"]) == (
        3,
        5,
        None,
        None,
    )
    assert not any(bar["came"] for bar in shown["bars"]) and "hand" not in json.dumps(shown)


def test_the_reveal_tells_what_came_and_names_only_who_asks_for_them():
    predictions = room(APART, {1: "closer", 2: "neither", 3: "neither"}, {1: "neither"})
    shown = predictions.histogram(APART, PEOPLE, {TEACHER}, reveal=True)
    assert (shown["came"], shown["right"]) == ("neither", 2) and [
        bar["came"] for bar in shown["bars"]
    ] == [False, False, True]
    assert "hand" not in json.dumps(shown)
    named = predictions.histogram(APART, PEOPLE, {TEACHER}, names=True)
    assert [bar["names"] for bar in named["bars"]] == [["hand1"], [], ["hand2", "hand3"]] and named[
        "came"
    ] is None


def test_what_came_is_the_teachers_run_else_that_of_most():
    assert (
        room(APART, {}, {1: "closer", 2: "closer", TEACHER: "neither"}).outcome(APART, {TEACHER})
        == "neither"
    )
    assert (
        room(APART, {}, {1: "closer", 2: "closer", 3: "neither"}).outcome(APART, {TEACHER})
        == "closer"
    )
    assert room(MESSAGES, {}, {1: 6, 2: 6, 3: 7}).outcome(MESSAGES) == 6
    nobody = room(APART, {1: "closer"}).histogram(APART, PEOPLE, reveal=True)
    assert (nobody["came"], nobody["right"]) == (None, None)


def test_numbers_have_a_bar_each_or_are_joined():
    few = room(MESSAGES, {1: 8, 2: 6, 3: 6}, {1: 1000}).histogram(MESSAGES, PEOPLE, reveal=True)
    assert counts(few) == {"6 messages": 2, "8 messages": 1, "1,000 messages": 0}
    assert [bar["came"] for bar in few["bars"]] == [False, False, True] and few["right"] == 0
    people = {uid: SimpleNamespace(name="x") for uid in range(40)}
    for values in (range(1, 41), [2**k for k in range(40)], range(-20, 20)):
        shown = room(MESSAGES, dict(enumerate(values)), {1: values[7]}).histogram(
            MESSAGES, people, reveal=True
        )
        assert len(shown["bars"]) <= MOST_BARS and sum(bar["count"] for bar in shown["bars"]) == 40
        assert sum(bar["came"] for bar in shown["bars"]) == 1 and shown["right"] == 1


def test_the_first_prediction_stays_and_the_last_run_counts():
    predictions = room(MESSAGES, {1: 8}, {1: 5})
    predictions.take(1, MESSAGES, {"prediction": "06-messages", "guess": 6})
    predictions.take(1, MESSAGES, {"prediction": "06-messages", "came": 6})
    assert predictions.guesses == {"06-messages": {1: 8}} and predictions.came == {
        "06-messages": {1: 6}
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"guess": "sideways"},
        {"guess": 99},
        {"guess": None},
        {"guess": ["closer"]},
        {"came": "<b>"},
        {},
        {"came": {}},
    ],
    ids=str,
)
def test_what_answers_nothing_changes_nothing(bad):
    predictions = Predictions()
    with pytest.raises(ValueError, match="none of the choices"):
        predictions.take(1, APART, bad)
    assert not predictions.guesses and not predictions.came and not predictions.last


def test_the_question_that_most_are_at():
    predictions = room(APART, {1: "closer", 2: "closer", 3: "closer", TEACHER: "closer"})
    predictions.take(3, MESSAGES, {"guess": 8})
    predictions.take(TEACHER, MESSAGES, {"guess": 8})
    assert predictions.current(PEOPLE) == "06-apart" and Predictions().current(PEOPLE) is None
    predictions.take(2, MESSAGES, {"guess": 8})
    assert predictions.current(PEOPLE) == "06-messages"
    assert predictions.counts(PEOPLE) == {"06-apart": 3, "06-messages": 2}


def test_a_question_that_has_changed_does_not_count_old_answers():
    predictions = room(MESSAGES, {1: 8, 2: 6}, {1: 6})
    now = Question("06-messages", "How many?", ("one", "more"))
    assert predictions.histogram(now, PEOPLE, reveal=True)["predicted"] == 0
    assert (
        room(APART, {1: "closer"}, {1: "closer"}).histogram(
            Question("06-apart", "?"), PEOPLE, reveal=True
        )["bars"]
        == []
    )


# ---- the service

ROLES = {"ann": "attendee", "ben": "attendee", "tea": "instructor"}
CELL = (
    'predict("06-apart", "Do the models come closer?",\n        ["closer", "further apart", '
    '"neither"])'
)


@pytest.fixture
def folder(tmp_path):
    write_accounts(tmp_path, ROLES)
    (tmp_path / "course" / "notebooks").mkdir(parents=True)
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)]),
        tmp_path / "course" / "notebooks" / "06_ddp.ipynb",
    )
    return tmp_path


def take(service, name, **message):
    return service.take(
        service.people.of_name(name), json.dumps({"prediction": "06-apart"} | message)
    )


def test_a_restart_keeps_predictions_and_wrong_lines_are_answered(folder):
    service = Service(folder)
    assert (
        take(service, "ann", guess="closer")
        == take(service, "ann", came="neither")
        == {"announcement": ""}
    )
    assert "none of the choices" in take(service, "ben", guess="sideways")["error"]
    assert (
        take(service, "ann", prediction="06-none", guess=1)["error"]
        == "no tutorial asks for the prediction '06-none'"
    )
    assert "error" in take(service, "ann", prediction={"a": 1}, guess=1)
    for _ in range(2):  # from the file as it was appended to, then as it is written anew
        again = Service(folder).board.predictions
        assert vars(again) == vars(service.board.predictions) and again.guesses and again.came
    assert len((folder / NAME).read_text().splitlines()) == 3


def test_the_page_is_told_counts_and_only_the_staff_gets_it(folder, monkeypatch):
    monkeypatch.setattr(service_module, "REFRESH_S", 0.05)
    monkeypatch.setattr(service_module, "STREAM_S", 0.2)

    async def events(fetch, name, query):
        answer = await fetch(name, "predictions/events?" + query)
        return (
            json.loads(answer.body.decode().partition("event: room\ndata: ")[2].partition("\n")[0])
            if answer.code == 200
            else answer.code
        )

    async def run():
        service = Service(folder)
        take(service, "ann", guess="closer")
        take(service, "ben", came="neither")
        async with pages(service) as address:

            async def fetch(name, path):
                headers = {"Authorization": f"token {name}"} if name else {}
                return await AsyncHTTPClient(force_instance=True).fetch(
                    address + path, headers=headers, raise_error=False, follow_redirects=False
                )

            codes = {
                name: [(await fetch(name, path)).code for path in ("predictions", "predictions.js")]
                for name in ("ann", "tea")
            }
            codes["nobody"] = [
                (await fetch(None, path)).code for path in ("predictions", "predictions/events")
            ]
            return codes, [
                await events(fetch, name, query)
                for name, query in (
                    ("tea", ""),
                    ("tea", "reveal=1"),
                    ("tea", "names=1&question=06-apart"),
                    ("ann", ""),
                )
            ]

    codes, (hidden, revealed, named, refused) = asyncio.run(run())
    assert codes == {"ann": [403, 200], "tea": [200, 200], "nobody": [302, 403]} and refused == 403
    assert (
        hidden["questions"] == [["06-apart", APART.text, 1]]
        and hidden["shown"]["predicted"] == 1
        and hidden["shown"]["people"] == 2
    )
    assert hidden["shown"]["came"] is None and "ann" not in json.dumps(hidden["shown"])
    assert revealed["shown"]["came"] == "neither" and "ann" not in json.dumps(revealed["shown"])
    assert named["shown"]["bars"][0]["names"] == ["ann"] and named["shown"]["came"] is None


def test_a_learners_calls_reach_the_board(folder, tmp_path, monkeypatch, capsys):
    """`predict` and `settle` as they are, through the socket."""
    for name in ("_asked", "_predictions", "_came", "_forms"):
        monkeypatch.setattr(predictions, name, {})
    monkeypatch.delenv("MANYHANDS_QUIET", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def use(path):
        monkeypatch.setenv(hub_client.BOARD, str(path))
        monkeypatch.setattr(hub_client, "TIMEOUT_S", 60)
        predictions.predict(APART.name, APART.text, APART.choices, guess=1)
        predictions.settle(APART.name, lambda: "neither")

    async def run():
        service, path = Service(folder), folder / "board.sock"
        async with await Door(service).listen(path):
            await asyncio.to_thread(use, path)
        return service

    service = asyncio.run(run())
    assert service.board.predictions.guesses["06-apart"] == {
        service.people.of_name("ann").uid: "closer"
    }
    assert list(service.board.predictions.came["06-apart"].values()) == ["neither"]
