"""Predictions on the pages of the tutorials.

`predict` becomes a form, and `settle` the folded outcome of its run.

`settings/static/predictions.js` brings them to life in the browser. Without it, the questions and
the folded outcomes can still be read.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, cast

from manyhands.learner.questions import calls, question_of

if TYPE_CHECKING:
    from manyhands.learner.questions import Question

BUTTONS = (
    '<p class="prediction-buttons" hidden><button type="submit" class="button">Lock</button>'
    '<button type="button" class="button quiet">Show the output without a prediction</button></p>'
)
ONLY = (ast.Import, ast.ImportFrom, ast.Expr)


def with_forms(text: str, outcomes: Mapping[str, Any]) -> str:
    """Return the notebook `text` with forms and outcomes in place of predictions.

    They are outputs of the cells that ask and settle. `outcomes` is {name of a question: what the
    run gave}. A notebook that cannot be read stays as it is, and is reported elsewhere.
    """
    try:
        notebook = json.loads(text)
        asked: dict[str, Question] = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                _change(cell, asked, outcomes)
    except (ValueError, KeyError, TypeError):
        return text
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _change(cell: dict[str, Any], asked: dict[str, Question], outcomes: Mapping[str, Any]) -> None:
    source = "".join(cell["source"])
    asking = calls(source)
    if not asking:
        return
    shown = []
    for function, call in asking:
        if function == "predict":
            question = question_of(call)
            asked[question.name] = question
            shown.append(_form(question, outcomes.get(question.name)))
        elif known := asked.get(str(cast(ast.Constant, call.args[0]).value)):
            shown.append(_outcome(known, outcomes.get(known.name)))
    machinery = all(isinstance(node, ONLY) for node in ast.parse(source).body)
    tags = cell.setdefault("metadata", {}).setdefault("tags", [])
    tags.append("remove-input" if machinery else "hide-input")
    cell["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}
        for html in shown
        if html
    ] + cell["outputs"]


def _form(question: Question, came: Any) -> str:
    name = escape(question.name)
    if question.choices:
        answers = "".join(
            f'<label><input type="radio" name="{name}" value="{escape(choice)}"> '
            f"{escape(choice)}</label>"
            for choice in question.choices
        )
    else:
        answers = (
            f'<label>Your number: <input type="text" name="{name}" inputmode="decimal" size="10" '
            f'autocomplete="off"> {escape(question.unit)}</label>'
        )
    known = ""
    if came is not None:
        known = (
            f' data-came="{escape(json.dumps(came))}" data-words="{escape(question.words(came))}"'
        )
    head = (
        f'data-name="{name}" data-unit="{escape(question.unit)}" '
        f'data-within="{question.within}"{known}'
    )
    return (
        f'<form class="prediction" {head}><fieldset><legend>Predict: '
        f'{escape(question.text)}</legend>{answers}</fieldset>{BUTTONS}<p class="prediction-told" '
        'role="status"></p></form>'
    )


def _outcome(question: Question, came: Any) -> str:
    if came is None:
        return ""
    return (
        f'<details class="settled" data-settles="{escape(question.name)}"><summary>What the run '
        f'gave</summary><p class="settled-told">{escape(question.text)} The run: '
        f"<strong>{escape(question.words(came))}</strong>.</p></details>"
    )
