"""Each prompt of a tutorial is a question that can be answered, and that a run settles.

That its value is one of the choices is seen where the tutorials run: there `settle` is strict.
"""

import ast
import re
from pathlib import Path

import pytest

from manyhands.authoring import canonical
from manyhands.learner.questions import calls, questions

ROOT = Path(__file__).resolve().parents[3]
TUTORIALS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROMPT = re.compile(r"\*\*Predict[,.:]|\*\*Predict\*\*")
# what settles it was measured before it was asked: there it is found among what is known
BEFORE = {"05-second-latency"}
LONGEST = {"question": 90, "choice": 45}  # letters: a projector shows them


def cells_of(path):
    return canonical.load(path).cells


def asked_and_settled(path):
    """{function: {name: (cell, call)}}; a name that is there twice is an error."""
    names = {"predict": {}, "settle": {}}
    for number, cell in enumerate(cells_of(path)):
        for function, call in calls(cell.source) if cell.cell_type == "code" else []:
            name = call.args[0].value
            assert name not in names[function], f"{path.name}: {function} of {name} is there twice"
            names[function][name] = number, call
    return names["predict"], names["settle"]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_prompt_is_followed_by_its_question(path):
    cells, (asked, _) = cells_of(path), asked_and_settled(path)
    prompts = [
        number
        for number, cell in enumerate(cells)
        if cell.cell_type == "markdown" and PROMPT.search(cell.source)
    ]
    assert {number for number, _ in asked.values()} == {
        number + 1 for number in prompts
    } and prompts


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_question_is_settled_after_a_run_by_what_the_run_gave(path):
    cells, (asked, settled) = cells_of(path), asked_and_settled(path)
    assert (
        list(asked) == sorted(asked, key=lambda name: asked[name][0])
        and asked.keys() == settled.keys()
    )
    for name, (number, _) in asked.items():
        assert name.startswith(f"{path.stem[:2]}-")
        where, call = settled[name]
        between = [
            cell
            for cell in cells[number + 1 : where]
            if cell.cell_type == "code" and not calls(cell.source)
        ]
        assert where > number and (between or name in BEFORE), (
            f"{name}: no run between the question and what settles it"
        )
        assert not isinstance(call.args[1], ast.Constant), f"{name}: a stored answer"
        assert not isinstance(call.args[1], ast.Lambda) or not isinstance(
            call.args[1].body, ast.Constant
        ), f"{name}: a stored answer"
        assert not cells[number].outputs and not cells[where].outputs, (
            f"{name}: a build shows something"
        )


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_board_can_read_every_question(path):
    by_name, (asked, _) = questions(path.parent), asked_and_settled(path)
    assert asked.keys() <= by_name.keys()
    for question in map(by_name.get, asked):
        assert len(question.text) <= LONGEST["question"], question
        assert all(len(choice) <= LONGEST["choice"] for choice in question.choices), question
