"""A tutorial's questions as forms on its page, with what its run gave."""

import json

from manyhands.website.web_predictions import with_forms

ASK = (
    'predict("06-sent", "How many <b>messages</b>?", unit="messages", '
    'within=0.25)\npredict("06-even", "Even?", ["yes", "no"])'
)


def code(source):
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}


def changed(*sources, outcomes=()):
    text = json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "metadata": {}, "source": "predict()"},
                *map(code, sources),
            ]
        }
    )
    return json.loads(with_forms(text, dict(outcomes)))["cells"][1:]


def shown(cell):
    return [output["data"]["text/html"] for output in cell["outputs"]]


def test_a_question_becomes_a_form_and_its_run_a_folded_outcome():
    ask, run, settle = changed(
        ASK,
        "x = 1",
        'settle("06-even", lambda: x)\nsettle("06-sent", 3)',
        outcomes={"06-even": "no", "06-sent": 3},
    )
    number, choice = shown(ask)
    assert (
        'data-came="3"' in number
        and 'data-words="3 messages"' in number
        and 'type="text"' in number
        and "&lt;b&gt;" in number
    )
    assert choice.count('type="radio"') == 2 and 'data-came="&quot;no&quot;"' in choice
    assert [text.count("<details") for text in shown(settle)] == [
        1,
        1,
    ] and "<strong>no</strong>" in shown(settle)[0]
    assert ask["metadata"]["tags"] == settle["metadata"]["tags"] == ["remove-input"]
    assert run == code("x = 1")


def test_code_that_a_reader_may_want_is_folded():
    _, settle = changed(
        ASK, 'def even():\n    return True\n\nsettle("06-even", even)', outcomes={"06-even": "yes"}
    )
    assert settle["metadata"]["tags"] == ["hide-input"]


def test_without_an_outcome_the_form_asks_and_says_nothing_of_the_run():
    ask, settle = changed(ASK, 'settle("06-even", True)')
    assert "data-came" not in "".join(shown(ask)) and shown(settle) == []


def test_what_is_no_notebook_stays_as_it_is():
    for text in ("{", "[]", '{"cells": 3}', '{"cells": [{}]}'):
        assert with_forms(text, {}) == text
