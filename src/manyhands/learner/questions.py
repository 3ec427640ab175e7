"""A question that a tutorial asks before a run.

`predict("06-messages", ...)` asks it, `settle("06-messages", ...)` says what came. A name is the
unit's number, a dash, and a word.
"""

import ast
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, cast

from manyhands.checks.record import plain

YES_NO = ("yes", "no")
EQUAL = 1e-9  # two numbers that are equal but for rounding
# no single number is a larger surprise; also where one of the two is 0, or they differ in sign
MOST_DOUBLINGS = 10.0


@dataclass(frozen=True)
class Question:
    """What is asked.

    With `choices` one of these texts is the answer, without them a number, in `unit`; it is right
    if it is not further than `within` times the run's number from it.
    """

    name: str
    text: str
    choices: tuple[str, ...] = ()
    unit: str = ""
    within: float = 0.0

    def __post_init__(self) -> None:
        number, _, word = str(self.name).partition("-")
        if not (len(number) == 2 and number.isdecimal() and word):
            raise ValueError(
                f'{self.name!r} is not the name of a prediction, such as "06-messages" in unit 06'
            )
        if len(self.choices) == 1 or len(set(self.choices)) < len(self.choices):
            raise ValueError(
                f"{self.name}: give two choices or more, all different, or none to ask for a number"
            )

    def read(self, guess: Any) -> str | float:
        """Return the guess as it is kept: a choice's text, or a number.

        A choice may be given as its text or as its number, from 1. ValueError if it is none.
        """
        if self.choices:
            if guess in self.choices:
                return guess
            if type(guess) is int and 1 <= guess <= len(self.choices):
                return self.choices[guess - 1]
            raise ValueError(
                f"{guess!r} is none of the choices: {', '.join(map(repr, self.choices))}"
            )
        return _number(guess)

    def outcome(self, came: Any) -> str | float:
        """What the run gave, as it is kept; True and False stand for the choices "yes" and "no".

        ValueError if it is no answer to this question.
        """
        came = plain(came)
        if self.choices and isinstance(came, bool) and set(self.choices) >= set(YES_NO):
            came = YES_NO[not came]
        if self.choices and came not in self.choices:
            raise ValueError(
                f"{came!r} is none of the choices of {self.name}: "
                f"{', '.join(map(repr, self.choices))}"
            )
        return came if self.choices else _number(came)

    def right(self, guess: Any, came: Any) -> bool:
        """Whether the guess is what the run gave: the same choice, or a number near enough."""
        if self.choices:
            return guess == came
        return abs(guess - came) <= max(self.within, EQUAL) * abs(came)

    def surprise(self, guess: Any, came: Any) -> float:
        """Return 0 for what is right, and 1 for another choice.

        For a number, it is how many doublings lie between the two.
        """
        if self.right(guess, came):
            return 0.0
        if self.choices:
            return 1.0
        if guess * came <= 0:
            return MOST_DOUBLINGS
        return min(MOST_DOUBLINGS, abs(math.log2(guess / came)))

    def words(self, value: Any) -> str:
        """A guess or an outcome for a reader: `6 messages`."""
        return value if self.choices else f"{in_digits(value)} {self.unit}".rstrip()


def in_digits(number: float) -> str:
    """A number for a reader: whole ones in full, others to four digits."""
    return f"{number:,.0f}" if number == round(number) and abs(number) < 1e15 else f"{number:.4g}"


def _number(value: Any) -> float:
    """A finite number, typed (`1,000`, `2/3`, `1e6`) or computed."""
    try:
        if isinstance(value, str):
            above, _, below = value.replace(",", "").replace("_", "").partition("/")
            value = float(above) / float(below or 1)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if is_number and math.isfinite(value):
            return int(value) if value == round(value) and abs(value) < 2**53 else float(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise ValueError(f"{value!r} is not a number: give, for example, 8, 0.5, 2/3 or 1e6")


def calls(
    source: str, functions: Collection[str] = ("predict", "settle")
) -> list[tuple[str, ast.Call]]:
    """Return [(function, call)] of a code cell, in order.

    These are its calls of `predict` and `settle` with a written-out name.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic
        return []
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in functions
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    return [
        (cast(ast.Name, node.func).id, node) for node in sorted(nodes, key=lambda node: node.lineno)
    ]


def question_of(call: ast.Call) -> Question:
    """Return the question that a written call of `predict` asks.

    ValueError where its arguments are not written out.
    """
    given: dict[str, Any] = dict(
        zip(
            ("name", "text", "choices"), map(ast.literal_eval, call.args), strict=False
        )  # choices are optional
    )
    given |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return Question(**given | {"choices": tuple(given.get("choices", ()))})


def questions(folder: str | Path) -> dict[str, Question]:
    """Return {name: Question} of all notebooks in a folder, in their order.

    What cannot be read has none.
    """
    by_name: dict[str, Question] = {}
    for path in sorted(Path(folder).glob("*.ipynb")):
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            asked = [
                question_of(call) for source in sources for _, call in calls(source, ("predict",))
            ]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        by_name |= {question.name: question for question in asked}
    return by_name
