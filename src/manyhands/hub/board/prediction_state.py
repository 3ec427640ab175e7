"""What a class has predicted, and what its runs gave: the histogram of a question.

No files, no network.

A prediction comes from the person's own machine. The question and its choices come from the course;
a first prediction stays, of what runs gave the last.
"""

import math
from collections import Counter
from itertools import pairwise
from statistics import median_low

MOST_BARS = 10  # more different numbers than these are joined


class Predictions:
    """All predictions. Who calls `take` has made sure who the person is."""

    def __init__(self):
        self.guesses, self.came = {}, {}  # {question's name: {uid: value}}
        self.last = {}  # {uid: the name of the last question that this person has predicted}

    def take(self, uid, question, message):
        """Take in {"prediction": name, "guess": ...} or {"prediction": name, "came": ...}; returns
        the line to keep.

        ValueError for what answers the question with nothing it asks for; nothing has changed then.
        """
        if "guess" in message:
            kept = self.guesses.get(question.name, {}).get(uid)
            guess = question.read(message["guess"]) if kept is None else kept
            return self.from_line({"prediction": question.name, "uid": uid, "guess": guess})
        return self.from_line(
            {"prediction": question.name, "uid": uid, "came": question.outcome(message.get("came"))}
        )

    def from_line(self, line):
        """Take in a line that `take` has returned; KeyError if it is none."""
        name, uid = line["prediction"], line["uid"]
        if "guess" in line:
            self.guesses.setdefault(name, {}).setdefault(uid, line["guess"])
            self.last[uid] = name
        else:
            self.came.setdefault(name, {})[uid] = line["came"]
        return line

    def as_lines(self):
        """All that must survive a restart, as plain data."""
        return [
            {"prediction": name, "uid": uid, kind: value}
            for kind, all_of in (("guess", self.guesses), ("came", self.came))
            for name, values in all_of.items()
            for uid, value in values.items()
        ]

    def current(self, people):
        """The question that most of these people have predicted last, or None."""
        votes = Counter(name for uid, name in self.last.items() if uid in people)
        return max(votes, key=lambda name: (votes[name], name), default=None)

    def counts(self, people):
        """{question's name: how many of these people have predicted it}."""
        return {name: len(values.keys() & people.keys()) for name, values in self.guesses.items()}

    def histogram(self, question, people, staff=(), reveal=False, names=False):
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
        shown = []
        for label, within in bars:
            who = [uid for uid, value in guesses.items() if within(value)]
            bar = {"label": label, "count": len(who), "came": came is not None and within(came)}
            shown.append(
                bar | ({"names": sorted(people[uid].name for uid in who)} if names else {})
            )
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

    def outcome(self, question, staff=()):
        """What came: in the run of who teaches, as the room has seen it, else in most runs; None if
        nobody has run it.
        """
        came = _fitting(question, self.came)
        runs = [value for uid, value in came.items() if uid in staff][-1:] or list(came.values())
        if not runs:
            return None
        return Counter(runs).most_common(1)[0][0] if question.choices else median_low(runs)


def _fitting(question, kept):
    """{uid: value} of a question, without values that answered it when it was another one."""
    return {
        uid: value for uid, value in kept.get(question.name, {}).items() if _fits(question, value)
    }


def _fits(question, value):
    try:
        return question.read(value) == value
    except ValueError:
        return False


def _listed(value):
    return [] if value is None else [value]


def _choices(question):
    return [(choice, lambda value, choice=choice: value == choice) for choice in question.choices]


def _ranges(question, values):
    """[(label, whether a value belongs there)]: one for each number, or for ranges of them,
    which grow where the numbers are far apart.
    """
    values = sorted(set(values))
    if len(values) <= MOST_BARS:
        return [(question.words(one), lambda value, one=one: value == one) for one in values]
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
            lambda value, part=part: value in part,
        )
        for part in ranges
        if part
    ]
