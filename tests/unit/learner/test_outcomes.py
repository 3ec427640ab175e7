"""What the runs of the tutorials gave, as the build keeps it for the web site."""

import json
from pathlib import Path

import pytest

from manyhands.learner import outcomes, predictions

ROOT = Path(__file__).resolve().parents[3]
CELL = (
    'predict("06-sent", "How many?", unit="messages", within=0.25)\npredict("06-even", "Even?", '
    '["yes", "no"])'
)


@pytest.fixture
def course(tmp_path):
    (tmp_path / "notebooks").mkdir()
    cells = [{"cell_type": "code", "source": CELL}]
    (tmp_path / "notebooks/06_ddp.ipynb").write_text(json.dumps({"cells": cells}))
    return tmp_path


def keep(root, number, values):
    (root / outcomes.FILE).write_text(outcomes.text_with(root, number, values))
    return outcomes.read(root)


def test_settling_notes_the_outcome_for_a_build_and_the_first_one_stays(tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    monkeypatch.setenv("MANYHANDS_QUIET", "1")
    monkeypatch.setattr(predictions, "_asked", {})
    predictions.predict("06-even", "Even?", ["yes", "no"])
    predictions.settle("06-even", True)  # no build
    monkeypatch.setenv(outcomes.NOTES, str(notes))
    assert outcomes.noted(notes) == {}
    predictions.settle("06-even", True)
    predictions.settle("06-even", False)
    assert outcomes.noted(notes) == {"06-even": "yes"}


def test_a_build_replaces_the_outcomes_of_its_unit_only(course):
    (course / outcomes.FILE).write_text('{"01-decay": 4, "06-old": 1, "06-even": "yes"}')
    assert keep(course, "06", {"06-even": "no", "06-sent": 8}) == {
        "01-decay": 4,
        "06-even": "no",
        "06-sent": 8,
    }


def test_a_measured_number_stays_while_the_question_would_accept_it(course):
    keep(course, "06", {"06-even": "no", "06-sent": 8})
    assert keep(course, "06", {"06-even": "no", "06-sent": 9})["06-sent"] == 8
    assert keep(course, "06", {"06-even": "no", "06-sent": 16})["06-sent"] == 16


@pytest.mark.parametrize(
    ("kept", "wanting"),
    [
        ({"06-even": "no", "06-sent": 8}, []),
        ({"06-even": "perhaps", "06-sent": "many"}, ["06-sent", "06-even"]),
        ({}, ["06-sent", "06-even"]),
    ],
)
def test_a_question_without_an_outcome_that_answers_it_is_found(course, kept, wanting):
    (course / outcomes.FILE).write_text(json.dumps(kept))
    assert outcomes.wanting(course, "06") == wanting and outcomes.wanting(course, "07") == []


@pytest.mark.parametrize("text", ["{", "[1]", ""])
def test_a_file_that_cannot_be_read_is_named(course, text):
    (course / outcomes.FILE).write_text(text)
    with pytest.raises(ValueError, match=outcomes.FILE):
        outcomes.read(course)
