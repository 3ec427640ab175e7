"""Predict, then run.

    predict("06-messages", "How many messages does a step send?", unit="messages")     # before the run
    settle("06-messages", lambda: sent)                                                # after it: the run's own value

In JupyterLab `predict` shows the choices or a field, elsewhere the call to make:
`predict("06-messages", guess=8)`. A prediction is locked by its button, or when the next cell runs;
from then on nothing changes it. Skipping one costs nothing. In a notebook, `settle` shows the
result as a card, and `predict` does not show it again. Predictions are kept with the learner's
progress. In builds and tests (MANYHANDS_QUIET=1) both are silent, and strict: a value that answers
the question with none of its choices is an error there.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

from manyhands.checks import progress
from manyhands.checks.report import in_notebook
from manyhands.learner import outcomes, prediction_card
from manyhands.learner.questions import Question
from manyhands.shared import hub_client
from manyhands.units import units

LOCKED = "You predicted: {guess}. It is locked; now run the cells below."
SHOWN_BELOW = "You predicted: {guess}. The result is shown below the run."
TOO_LATE = "You made no prediction before the run. You can make it after a restart of the kernel."
CAME_FIRST = (
    "The run came before a prediction: {came}. You can predict it after a restart of the kernel."
)
PLAIN = '{question}\n{answers}To predict: predict("{name}", guess=...). Or go on without.'
SETTLED = "You predicted: {guess}. The run: {came}. {verdict}"
NOT_PREDICTED = "The run: {came}. (You made no prediction.)"
NONE, CHANGED = "You made no prediction.", "The question has changed since you answered it."
RIGHT, OTHER = "Right.", "The outcome differs from your prediction."
FACTOR = "The number differs from your prediction by a factor of {times}."
NOTHING_CAME = "There is nothing to settle {name} with yet ({why}): run the cells above first."

_asked: dict[str, Question] = {}  # name -> Question, of this kernel
# name -> {"guess", ...} of this kernel: where there is no progress file, all that is kept
_predictions: dict[str, progress.Prediction] = {}
_came: dict[str, Any] = {}  # name -> what the run gave
_forms: dict[str, Any] = {}  # name -> the form that JupyterLab shows


def predict(
    name: str,
    question: str | None = None,
    choices: Sequence[str] = (),
    *,
    unit: str = "",
    within: float = 0.0,
    guess: Any = None,
) -> None:
    """Ask for a prediction before a run.

    It is one of `choices`, or without them a number in `unit` that is right to `within` times the
    run's. `guess` gives the answer at once: a choice's text or its number from 1, or the number;
    with it the name of what was asked before is enough. A prediction that was made is shown, and
    cannot be changed.

    ValueError where the question or the guess is none.
    """
    if question is None and name not in _asked:
        raise ValueError(
            f"the question {name!r} has not been asked yet: run the cell with the question first"
        )
    asked = (
        _asked[name] if question is None else Question(name, question, tuple(choices), unit, within)
    )
    _asked[name] = asked
    made = None if guess is None else asked.read(guess)
    if _quiet():
        return
    if made is not None and name not in _came:
        locked = lock(asked, made)
        if name in _forms:
            _forms[name].close(locked)
    if known := describe(asked):
        _say(known, prediction_card.remark(asked.text, _without_outcome(asked)))
    elif name in _came:
        _say(
            CAME_FIRST.format(came=asked.words(_came[name])),
            prediction_card.remark(asked.text, TOO_LATE),
        )
    else:
        _show(asked)


def settle(name: str, came: Any) -> None:
    """Say what the run gave, as its value or as a function without arguments that returns it.

    For choices, that is one of their texts, or True and False for "yes" and "no"; else the number.
    A first outcome stays.

    Shows a card, or one line outside a notebook, where the question was asked in this kernel. A run
    that was changed, or not made, is told, not raised; in builds it is raised.
    """
    asked = _asked.get(name)
    if asked is None and not _quiet():
        return
    try:
        if asked is None:
            raise ValueError(f"settle({name!r}): no cell before has asked predict({name!r}, ...)")
        value = asked.outcome(_value_of(came))
    except Exception as problem:
        # of the learner's own run: a name that is missing, a cluster that was stopped
        if _quiet():
            raise
        print(
            NOTHING_CAME.format(
                name=name, why=str(problem).split("\n")[0][:120] or type(problem).__name__
            )
        )
        return
    if _quiet():
        outcomes.note(name, value)
        return
    _came.setdefault(name, value)
    hub_client.ask_board({"prediction": name, "came": value})
    _remember_outcome(asked, value)
    _say(describe(asked) or NOT_PREDICTED.format(came=asked.words(value)), _outcome(asked, value))
    if name in _forms:
        _forms.pop(name).close(_without_outcome(asked) or TOO_LATE)


def _value_of(came: Any) -> Any:
    """Return the value itself, or what the function returns.

    What it prints on its way, a fault's report, is not shown.
    """
    if not callable(came):
        return came
    with redirect_stdout(io.StringIO()):
        return came()


def lock(asked: Question, guess: Any) -> str:
    """Keep the first guess, in the progress file where there is one, and tell the class's board."""
    with suppress(OSError):
        if place := _place(asked.name):
            _predictions[asked.name] = progress.lock_prediction(*place, asked.name, guess)
    prediction = _predictions.setdefault(asked.name, {"guess": guess})
    hub_client.ask_board({"prediction": asked.name, "guess": prediction["guess"]})
    return describe(asked)


def describe(asked: Question) -> str:
    """What is kept of a prediction, in one line; "" where there is none."""
    prediction = _recorded(asked.name)
    if not prediction:
        return ""
    if "came" not in prediction:
        return LOCKED.format(guess=_shown(asked, prediction["guess"]))
    return SETTLED.format(
        guess=_shown(asked, prediction["guess"]),
        came=_shown(asked, prediction["came"]),
        verdict=_verdict(prediction),
    )


def _without_outcome(asked: Question) -> str:
    """Return what is told of a prediction where its question is asked.

    The card below the run shows the rest.
    """
    prediction = _recorded(asked.name)
    return (
        SHOWN_BELOW.format(guess=_shown(asked, prediction["guess"]))
        if "came" in prediction
        else describe(asked)
    )


def _outcome(asked: Question, value: Any) -> str:
    """The card of what the run gave; `value`: of this run, if no prediction was settled before."""
    prediction = _recorded(asked.name)
    guess = _shown(asked, prediction["guess"]) if prediction else None
    came = _shown(asked, prediction.get("came", value))
    right, verdict = (
        (prediction["right"], _verdict(prediction))
        if "came" in prediction
        else (None, CHANGED if prediction else NONE)
    )
    return prediction_card.outcome(asked.text, guess, came, right, verdict)


def _say(plain: str, html: str) -> None:
    """A card in a notebook; where a page cannot draw it, and outside a notebook, the plain text."""
    if not in_notebook():
        print(plain)
        return
    from IPython.display import display

    display({"text/plain": plain, "text/html": html}, raw=True)


def _verdict(prediction: progress.Prediction) -> str:
    if prediction["right"]:
        return RIGHT
    guess, came = prediction["guess"], prediction["came"]
    if isinstance(guess, str) or isinstance(came, str) or guess * came <= 0:
        return OTHER
    return FACTOR.format(times=f"{max(guess / came, came / guess):.3g}")


def _shown(asked: Question, value: Any) -> str:
    """Also of what was kept when the question was another one."""
    return (
        value if isinstance(value, str) else asked.words(value) if not asked.choices else str(value)
    )


def _remember_outcome(asked: Question, value: Any) -> None:
    prediction = _recorded(asked.name)
    if not prediction or "came" in prediction:
        return
    try:
        guess = asked.read(prediction["guess"])
    except ValueError:  # kept when the question was another one
        return
    right, surprise = asked.right(guess, value), asked.surprise(guess, value)
    _predictions[asked.name] = {**prediction, "came": value, "right": right, "surprise": surprise}
    with suppress(OSError):
        if place := _place(asked.name):
            progress.settle_prediction(*place, asked.name, value, right, surprise)


def _recorded(name: str) -> progress.Prediction:
    if name not in _predictions and (place := _place(name)):
        prediction = progress.predictions(*place).get(name)
        if isinstance(prediction, dict) and "guess" in prediction:
            _predictions[name] = prediction
    return _predictions.get(name, {})


def _place(name: str) -> tuple[Path, str] | None:
    """(the work folder, the unit) whose progress this prediction belongs to, or None."""
    work = progress.work_folder()
    unit = next((unit.name for unit in units(Path()) if unit.number == name[:2]), None)
    return (work, unit) if work and unit else None


def _quiet() -> bool:
    return os.environ.get("MANYHANDS_QUIET") == "1"


def _show(asked: Question) -> None:
    """A form in a notebook; where nobody draws one, and in a terminal, the call that answers."""
    numbered = [f"  {number}. {choice}\n" for number, choice in enumerate(asked.choices, 1)]
    plain = PLAIN.format(question=asked.text, answers="".join(numbered), name=asked.name)
    if not in_notebook():
        print(plain)
        return
    from manyhands.learner.plain_form import PlainForm, is_needed

    shell = sys.modules["IPython"].get_ipython()
    if is_needed(shell):
        form: Any = PlainForm(asked)
    else:
        from manyhands.learner.prediction_form import Form

        form = Form(asked, lock)
    with suppress(ValueError):
        shell.events.unregister("pre_run_cell", _next_cell_runs)
    shell.events.register("pre_run_cell", _next_cell_runs)
    _forms[asked.name] = form
    form.show(plain)


def _next_cell_runs(info: object = None) -> None:
    """Lock what was chosen: the cell that runs now may give the answer."""
    for name in list(_forms):
        _forms[name].end()
