"""Lab 20: an entry that is called right has the room that its own check asks for.

It needs that room because a grader's data are drawn anew.
"""

import pytest

import mutants
from manyhands.checks.hackathon import cell_entry
from manyhands.grading import notebooks
from manyhands.hackathon.challenges.challenge import SLOW_LINKS
from manyhands.hackathon.judge.judging import public_seeds
from manyhands.hackathon.judge.open_judge import OpenJudge

UNIT = "20_hackathon"
MISSED = "The target was not reached: 0.8120 of 0.84 on the test's samples."


def entries():
    """{name: text} of the solution's entry, and of the mutants' that are to reach the target."""
    solution = {
        cell.source
        for cell in notebooks.read(mutants.solution_path(UNIT)).cells
        if notebooks.grade_id(cell) == "entry"
    }
    right = {
        mutant.path.stem: mutant.cells["entry"]
        for mutant in mutants.of_unit(UNIT)
        if "entry" in mutant.cells and "entry/right" not in mutant.fails
    }
    return {"solution": solution.pop(), **right}


@pytest.fixture(scope="module")
def judge():
    with OpenJudge() as opened:
        yield opened


@pytest.mark.parametrize("name", entries())
def test_a_right_entry_has_room(judge, name):
    for seed in public_seeds(3):
        run, _ = judge.run(SLOW_LINKS, entries()[name], seed, target=cell_entry.OWN_TARGET)
        assert run.problem == ""


def test_only_a_learner_is_asked_for_room(monkeypatch):
    monkeypatch.delenv("MANYHANDS_SEED", raising=False)
    assert cell_entry.target() == cell_entry.OWN_TARGET > cell_entry.TARGET
    assert "A grader asks for 80 %" in cell_entry.stopped(MISSED, entries).details["mistake"]
    monkeypatch.setenv("MANYHANDS_SEED", "4711")
    assert cell_entry.target() == cell_entry.TARGET
    assert cell_entry.stopped(MISSED, entries).details["mistake"] == MISSED


def test_the_lab_says_both_targets():
    text = (mutants.ROOT / "sources" / "labs" / f"{UNIT}.py").read_text()
    assert all(
        f"{100 * target:.0f} %" in text for target in (cell_entry.TARGET, cell_entry.OWN_TARGET)
    )
