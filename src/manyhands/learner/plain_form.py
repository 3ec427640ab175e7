"""The form of a prediction as plain HTML, for pages that cannot show our widgets.

Those are the widgets of `prediction_form`. VS Code would fetch their program from the network, and
the widgets of Colab and Kaggle are older.
"""

from __future__ import annotations

import os
from html import escape
from importlib import metadata
from typing import TYPE_CHECKING, Any

from IPython.display import display

from manyhands.learner import prediction_card

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

    from manyhands.learner.questions import Question

OLDEST_WIDGETS = 8  # the major version of ipywidgets
OTHER_PLACES = ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE")  # variables of Colab and of Kaggle
VS_CODE = "__vsc_ipynb_file__"  # a name that VS Code gives to each of its kernels
CALL = (
    'To predict, run <code>predict("{name}", guess=...)</code> in a new cell, with {answer} instead'
    " of the dots. It locks your prediction. You can also go on without one."
)


def is_needed(shell: Any) -> bool:
    """Whether the page that shows this kernel's outputs has no place for our widgets.

    `shell` is the kernel's IPython.
    """
    if VS_CODE in shell.user_ns or any(name in os.environ for name in OTHER_PLACES):
        return True
    try:
        return int(metadata.version("ipywidgets").split(".")[0]) < OLDEST_WIDGETS
    except (metadata.PackageNotFoundError, ValueError):
        return True


class PlainForm:
    """One question. The learner answers it with a call, so that there is nothing to lock here."""

    def __init__(self, question: Question) -> None:
        self.question, self.plain = question, question.text
        self.shown: DisplayHandle | None = None
        unit = f" of {question.unit}" if question.unit else ""
        answer = "the number of your choice" if question.choices else f"a number{escape(unit)}"
        self.answer_line = CALL.format(name=escape(question.name), answer=answer)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.plain, "text/html": self.html()}

    def html(self) -> str:
        """Return the form as HTML without widgets: the question, its choices, and how to answer."""
        choices = "".join(f"<li>{escape(choice)}</li>" for choice in self.question.choices)
        rows = f'<ol style="margin: .2em 0">{choices}</ol>' if choices else ""
        return prediction_card.form(self.question.text, f"{rows}<div>{self.answer_line}</div>")

    def show(self, plain: str) -> None:
        """Show the form below the cell; a page without HTML gets the text `plain`."""
        self.plain = plain
        self.shown = display(self, display_id=True)

    def end(self) -> None:
        """The next cell runs: the question stays open until the run has settled it."""

    def close(self, message: str) -> None:
        """Show the message instead of the call."""
        self.plain, self.answer_line = message, escape(message)
        if self.shown:
            self.shown.update(self)
