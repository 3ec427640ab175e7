"""The form of a prediction in JupyterLab.

It has choices or a field for a number, and a button that locks it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
from IPython.display import display

if TYPE_CHECKING:
    from manyhands.learner.questions import Question

OVER = "Not predicted, because the next cell has run. To predict nevertheless, run this cell again."
LINE = '<span style="color: var(--jp-content-font-color1)">{}</span>'


class Form:
    """One question. `lock(question, guess)` is called once, and returns what to say then."""

    def __init__(self, question: Question, lock: Callable[[Question, Any], str]) -> None:
        self.question, self._lock, self._open, self._once = question, lock, True, threading.Lock()
        if question.choices:
            self.answer = ipywidgets.RadioButtons(options=question.choices, value=None)
            self.answer.layout.width = "100%"
        else:
            self.answer = ipywidgets.Text(
                placeholder=f"a number of {question.unit}" if question.unit else "a number"
            )
        self.button = ipywidgets.Button(description="Lock", tooltip="Lock this prediction")
        self.message = ipywidgets.HTML()
        self.button.on_click(self._pressed)
        question_line = ipywidgets.HTML(LINE.format(f"<b>Predict:</b> {escape(question.text)}"))
        self.box = ipywidgets.VBox(
            [question_line, self.answer, ipywidgets.HBox([self.button, self.message])]
        )
        self.box.add_class("manyhands-prediction")

    def show(self, plain: str) -> None:
        """Draw it; a page that cannot shows the plain text."""
        data, metadata = self.box._repr_mimebundle_(), {}
        if isinstance(data, tuple):
            data, metadata = data
        display(data | {"text/plain": plain}, raw=True, metadata=metadata)

    def _pressed(self, _: object) -> None:
        if self._guess() is None:
            self.say(
                "Choose one first."
                if self.question.choices
                else "Type a number first: 8, 0.5, 2/3 or 1e6."
            )
        else:
            self.end()

    def _guess(self) -> str | float | None:
        try:
            return self.question.read(self.answer.value)
        except ValueError:
            return None

    def end(self) -> None:
        """Lock what stands there; nothing is asked any more."""
        with self._once:  # the button's press and the next cell may come in two threads
            was_open, self._open = self._open, False
        if was_open:
            guess = self._guess()
            self.close(OVER if guess is None else self._lock(self.question, guess))

    def close(self, message: str) -> None:
        """Lock the form, and say `message` below it."""
        self._open, self.answer.disabled = False, True
        self.button.layout.display = "none"
        self.say(message)

    def say(self, message: str) -> None:
        """Say `message` below the form."""
        self.message.value = LINE.format(escape(message))
