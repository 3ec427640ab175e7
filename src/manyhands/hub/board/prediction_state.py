"""What a class has predicted, and what its runs gave: the histogram of a question.

No files, no network.

A prediction comes from the person's own machine. The question and its choices come from the course;
a first prediction stays, of what runs gave the last.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import pairwise
from operator import eq
from statistics import median_low
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping
    from typing import Any

    from manyhands.hub.accounts.table import Account
    from manyhands.learner.questions import Question

    Value = str | float  # what answers a question: a choice, or a number
    # the label of each, and whether a value belongs there
    Bars = list[tuple[str, Callable[[Any], bool]]]


MOST_BARS = 10  # more different numbers than these are joined


class _OfPerson(TypedDict):
    prediction: str  # the question's name
    uid: int


class Line(_OfPerson, total=False):
    """A prediction, or what a run gave, as it is kept: one of the two."""

    guess: Value
    came: Value


class _Bar(TypedDict):
    label: str
    count: int
    came: bool  # whether what came is in it


class Bar(_Bar, total=False):
    """A bar of a histogram; who has predicted it only where that is asked for."""

    names: list[str]


class Histogram(TypedDict):
    """What the page of predictions shows of a question."""

    name: str
    question: str
    people: int
    predicted: int
    bars: list[Bar]
    came: str | None
    right: int | None


class Predictions:
    """All predictions. Who calls `take` has made sure who the person is."""

    def __init__(self) -> None:
        # {question's name: {uid: value}}
        self.guesses: dict[str, dict[int, Value]] = {}
        self.came: dict[str, dict[int, Value]] = {}
        # {uid: the name of the last question that this person has predicted}
        self.last: dict[int, str] = {}

    def take(self, uid: int, question: Question, message: dict[str, Any]) -> Line:
        """Take in what a person has predicted, or what their run gave; returns the line to keep.

        The message is {"prediction": name, "guess": ...} or {"prediction": name, "came": ...}.

        ValueError for what answers the question with nothing it asks for; nothing has changed then.
        """
        if "guess" in message:
            earlier_guess = self.guesses.get(question.name, {}).get(uid)
            guess = question.read(message["guess"]) if earlier_guess is None else earlier_guess
            return self.from_line({"prediction": question.name, "uid": uid, "guess": guess})
        return self.from_line(
            {"prediction": question.name, "uid": uid, "came": question.outcome(message.get("came"))}
        )

    def from_line(self, line: Line) -> Line:
        """Take in a line that `take` has returned; KeyError if it is none."""
        name, uid = line["prediction"], line["uid"]
        if "guess" in line:
            self.guesses.setdefault(name, {}).setdefault(uid, line["guess"])
            self.last[uid] = name
        else:
            self.came.setdefault(name, {})[uid] = line["came"]
        return line

    def as_lines(self) -> list[Line]:
        """All that must survive a restart, as plain data."""
        lines: list[Line] = [
            {"prediction": name, "uid": uid, "guess": value}
            for name, values in self.guesses.items()
            for uid, value in values.items()
        ]
        lines += [
            {"prediction": name, "uid": uid, "came": value}
            for name, values in self.came.items()
            for uid, value in values.items()
        ]
        return lines

    def current(self, people: Container[int]) -> str | None:
        """The question that most of these people have predicted last, or None."""
        votes = Counter(name for uid, name in self.last.items() if uid in people)
        return max(votes, key=lambda name: (votes[name], name), default=None)

    def counts(self, people: Mapping[int, Account]) -> dict[str, int]:
        """{question's name: how many of these people have predicted it}."""
        return {name: len(values.keys() & people.keys()) for name, values in self.guesses.items()}

    def histogram(
        self,
        question: Question,
        people: Mapping[int, Account],
        staff: Container[int] = (),
        reveal: bool = False,
        names: bool = False,
    ) -> Histogram:
        """The bars of a question for `people` ({uid: Account}): counts only.

        With `reveal` also what came, and with `names` who; `staff` are the uids of those who teach.
        """
        guesses = {
            uid: value for uid, value in _fitting(question, self.guesses).items() if uid in people
        }
        came = self.outcome(question, staff) if reveal else None
        bars = (
            _choices(question)
            if question.choices
            else _ranges(question, [*guesses.values(), *_listed(came)])
        )
        shown: list[Bar] = []
        for label, within in bars:
            who = [uid for uid, value in guesses.items() if within(value)]
            bar: Bar = {
                "label": label,
                "count": len(who),
                "came": came is not None and within(came),
            }
            if names:
                bar["names"] = sorted(people[uid].name for uid in who)
            shown.append(bar)
        return {
            "name": question.name,
            "question": question.text,
            "people": len(people),
            "predicted": len(guesses),
            "bars": shown,
            "came": None if came is None else question.words(came),
            "right": (
                None
                if came is None
                else sum(question.right(value, came) for value in guesses.values())
            ),
        }

    def outcome(self, question: Question, staff: Container[int] = ()) -> Value | None:
        """What came: in the teacher's run, as the class has seen it, else in most runs.

        None if nobody has run it.
        """
        came = _fitting(question, self.came)
        runs = [value for uid, value in came.items() if uid in staff][-1:] or list(came.values())
        if not runs:
            return None
        return Counter(runs).most_common(1)[0][0] if question.choices else median_low(runs)


def _fitting(question: Question, kept: dict[str, dict[int, Value]]) -> dict[int, Value]:
    """{uid: value} of a question, without values that answered it when it was another one."""
    return {
        uid: value for uid, value in kept.get(question.name, {}).items() if _fits(question, value)
    }


def _fits(question: Question, value: Value) -> bool:
    try:
        return question.read(value) == value
    except ValueError:
        return False


def _listed(value: Value | None) -> list[Value]:
    return [] if value is None else [value]


def _choices(question: Question) -> Bars:
    return [(choice, partial(eq, choice)) for choice in question.choices]


def _ranges(question: Question, values: list[Any]) -> Bars:
    """[(label, whether a value belongs there)] of a histogram's bars.

    There is one for each number, or for ranges of them, which grow where the numbers are far apart.
    """
    values = sorted(set(values))
    if len(values) <= MOST_BARS:
        return [(question.words(value), partial(eq, value)) for value in values]
    low, high = values[0], values[-1]
    if low > 0 and high / low > MOST_BARS:
        edges = [low * math.exp(math.log(high / low) * k / MOST_BARS) for k in range(1, MOST_BARS)]
    else:
        edges = [low + (high - low) * k / MOST_BARS for k in range(1, MOST_BARS)]
    edges = [-math.inf, *edges, math.inf]
    ranges = [[value for value in values if a < value <= b] for a, b in pairwise(edges)]
    return [
        (
            (
                f"{question.words(part[0])} to {question.words(part[-1])}"
                if len(part) > 1
                else question.words(part[0])
            ),
            part.__contains__,
        )
        for part in ranges
        if part
    ]
