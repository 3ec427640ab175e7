"""What `predict` and `settle` show in a notebook once a prediction was made.

It is in the style of a check's card.

As there (`manyhands.checks.card`), it is plain HTML with inline styles, and signs and words say
what the colour says. A wrong prediction costs nothing, so its colour is not the red of a failed
check.
"""

from html import escape

from manyhands.checks.card import COLOUR, LINE, NOT_BEGUN, SIGN
from manyhands.checks.record import FAIL, PASS

SURPRISE, ASKED = "#8a5a00", "#3b5fc0"
CARD = (
    '<div role="group" aria-label="{label}" style="max-width: 60em; padding: .3em .8em .5em; '
    f"border: 1px solid {LINE}; border-left: 6px solid {{colour}}; border-radius: 4px; "
    'line-height: 1.5"><div><b>{question}</b></div>{rows}</div>'
)
BADGE = (
    '<div style="margin: .3em 0"><span style="display: inline-block; padding: 0 .5em; '
    'border-radius: 3px; color: #ffffff; background-color: {colour}">{sign} {verdict}</span></div>'
)
ROW = '<div style="overflow-wrap: anywhere"><small>{name}:</small> <b>{value}</b></div>'


def outcome(question: str, guess: str | None, came: str, right: bool | None, verdict: str) -> str:
    """The card of a result: the learner's choice, what the run gave, and whether they agree.

    All texts are plain. `guess` is None if there was no prediction, `right` is None if it cannot be
    judged.
    """
    sign, colour = {
        True: (SIGN[PASS], COLOUR[PASS]),
        False: (SIGN[FAIL], SURPRISE),
        None: (SIGN[NOT_BEGUN], COLOUR[NOT_BEGUN]),
    }[right]
    rows = BADGE.format(sign=sign, colour=colour, verdict=escape(verdict))
    rows += ROW.format(name="Your prediction", value=escape(guess)) if guess is not None else ""
    return _card(
        "result of the prediction",
        question,
        colour,
        rows + ROW.format(name="The run", value=escape(came)),
    )


def form(question: str, rows: str) -> str:
    """A question that is still open. `rows`: HTML, namely its choices and how to answer."""
    return _card("prediction", f"Predict: {question}", ASKED, rows)


def remark(question: str, text: str) -> str:
    """The question and a line about its prediction, which is shown instead of the form."""
    return _card("prediction", question, COLOUR[NOT_BEGUN], f"<div>{escape(text)}</div>")


def _card(label: str, question: str, colour: str, rows: str) -> str:
    return CARD.format(label=label, question=escape(question), colour=colour, rows=rows)
