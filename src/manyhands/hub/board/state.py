"""What the board knows: the last results of each person in each unit, and what follows from them.

No files, no network.

A result comes from the person's own machine, so nothing in it is believed further than that
person's row: which criteria there are, their texts and points come from the unit's reference. Of a
result we keep, for each of these, whether it passed, and one line that says why not.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any, TypedDict

from manyhands.checks.card import NOT_BEGUN, states
from manyhands.checks.record import BLOCKED, FAIL, PASS, cut
from manyhands.hub.board.prediction_state import Predictions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from manyhands.hub.accounts.table import Account


LONGEST = {"message": 200, "announcement": 200}  # letters
MOST_HINTS = 99
# so many must have checked before their median is shown to attendees: it says too much about one of
# two
ENOUGH = 5
# as they travel to the page; "-": not checked yet
CELLS = {PASS: "p", FAIL: "f", BLOCKED: "b", NOT_BEGUN: "o"}
NOTEBOOK = "the notebook itself"


class Cell(TypedDict, total=False):
    """A person's last result for one criterion; empty where there is none."""

    status: str
    since: float  # of this status
    message: str


class Stuck(TypedDict):
    """Where a person is stuck: the place of the criterion, or None for the notebook itself."""

    criterion: int | None
    since: float
    message: str


class Said(TypedDict):
    """The announcement."""

    text: str
    by: str
    when: float


class OfAll(TypedDict):
    """What is told of all together."""

    announcement: Said | None
    checked: int
    median: float | None
    max: float
    full: int
    people: int


class Column(TypedDict):
    """A criterion, as pages get it."""

    check: str
    text: str
    points: float


class CountedColumn(Column):
    """The same, as instructors see it."""

    passed: int
    failing: int


class ShownRow(TypedDict):
    """A person's row, as pages get it; `messages` by the criterion's place."""

    name: str
    full_name: str
    checked: float
    hints: int
    points: float
    cells: str
    stuck: Stuck | None
    messages: dict[int, str]


class ClassView(OfAll):
    """What instructors see."""

    criteria: list[CountedColumn]
    rows: list[ShownRow]


class Own(TypedDict):
    """What an attendee sees."""

    announcement: Said | None
    max: float
    median: float | None
    criteria: list[Column]
    rows: list[ShownRow]


class BadResultError(ValueError):
    """This is no result; the message says why."""


@dataclass(frozen=True)
class Criterion:
    """One column: what the solution shows of it."""

    check: str
    name: str
    text: str
    points: float
    blocked: bool = False  # this machine cannot check it

    @property
    def key(self) -> str:
        """The criterion's name among all those of its unit."""
        return f"{self.check}/{self.name}"


@dataclass
class Row:
    """A person's last results in one unit. Times are seconds since 1970."""

    uid: int  # never given to another person, unlike a name
    unit: str
    checked: float = 0.0  # when they last checked
    moved: float = 0.0  # when a criterion last passed that had not passed before
    hints: int = 0
    verdict: str = ""  # why the last notebook could not be graded
    verdict_since: float = 0.0
    # by the criterion's key
    cells: dict[str, Cell] = field(default_factory=dict)

    def status(self, criterion: Criterion) -> str | None:
        """BLOCKED, or what the last check said of a criterion; None where it said nothing."""
        if criterion.blocked:
            return BLOCKED
        return self.cells.get(criterion.key, {}).get("status")

    def signs(self, criteria: Sequence[Criterion]) -> str:
        """A letter of CELLS for each criterion.

        What fails because nothing is written yet is not begun.
        """
        # as much of a criterion's record as `states` reads
        record: list[Any] = [
            {
                "status": self.status(criterion),
                "values": [1],
                "detail": {"mistake": self.cells.get(criterion.key, {}).get("message", "")},
            }
            for criterion in criteria
        ]
        return "".join(CELLS.get(state, "-") for state in states(record))

    def points(self, criteria: Sequence[Criterion]) -> float:
        """How many points the criteria that pass give."""
        return sum(criterion.points for criterion in criteria if self.status(criterion) == PASS)

    def stuck(self, criteria: Sequence[Criterion]) -> Stuck | None:
        """{"criterion": its place, "since", "message"} of the first criterion that fails, or None.

        Since when: its first failure, or the last time that another one passed, if that was later:
        whoever solves one after the other moves on, though the last has failed from the beginning.
        """
        if self.verdict:
            return {"criterion": None, "since": self.verdict_since, "message": self.verdict}
        for place, criterion in enumerate(criteria):
            if self.status(criterion) == FAIL:
                cell = self.cells[criterion.key]
                return {
                    "criterion": place,
                    "since": max(cell["since"], self.moved),
                    "message": cell["message"],
                }
        return None


def one_line(text: object, longest: int) -> str:
    """Text of somebody else's in one printable line, cut; "" for what is no text."""
    if not isinstance(text, str):
        return ""
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: 10 * longest])
    return cut(" ".join(printable.split()), longest)


class Board:
    """All rows, the announcement, the predictions.

    Who calls `take` has made sure who the person is.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, Row]] = {}  # {unit: {uid: Row}}
        self.announcement: Said | None = None
        self.predictions = Predictions()

    def take(
        self,
        uid: int,
        unit: str,
        criteria: Sequence[Criterion],
        result: dict[str, Any],
        now: float | None = None,
    ) -> Row:
        """Take in what `manyhands check` tells; returns the row.

        The result is {"criteria": [{"check", "name", "status", "message"}], "verdict", "hints"}.

        Criteria that the unit does not have are passed over. Raises BadResultError, and has changed
        nothing then.
        """
        now = time.time() if now is None else now
        cells, verdict, hints = _read(result)
        row = self.rows.setdefault(unit, {}).setdefault(uid, Row(uid, unit))
        row.checked, row.hints = now, hints
        if verdict:
            row.verdict_since = row.verdict_since if row.verdict else now
        row.verdict = verdict
        for criterion in criteria:
            status, message = cells.get(criterion.key, (None, ""))
            if verdict or status is None:
                continue
            before = row.cells.get(criterion.key, {})
            if status == PASS and before.get("status") != PASS:
                row.moved = now
            row.cells[criterion.key] = {
                "status": status,
                "since": before["since"] if before.get("status") == status else now,
                "message": message,
            }
        return row

    def announce(self, text: str, by: str, now: float | None = None) -> Said | None:
        """Put up the announcement, or take it down with an empty text; returns it."""
        text = one_line(text, LONGEST["announcement"])
        self.announcement = (
            {"text": text, "by": by, "when": time.time() if now is None else now} if text else None
        )
        return self.announcement

    def units(self, uids: Iterable[int]) -> list[str]:
        """The units that these people have checked."""
        return sorted(unit for unit, rows in self.rows.items() if not rows.keys().isdisjoint(uids))

    def current(self, uids: Set[int]) -> str | None:
        """The unit in which most of these people checked last, or None.

        No single person decides what the class sees.
        """
        last: dict[int, tuple[float, str]] = {}
        for unit, rows in self.rows.items():
            for uid in rows.keys() & uids:
                last[uid] = max(last.get(uid, (0.0, "")), (rows[uid].checked, unit))
        votes, newest = (
            Counter(unit for _, unit in last.values()),
            {unit: when for when, unit in sorted(last.values())},
        )
        return max(votes, key=lambda unit: (votes[unit], newest[unit]), default=None)

    def of_all(
        self, unit: str, criteria: Sequence[Criterion], people: Mapping[int, Account]
    ) -> OfAll:
        """What is told of all `people` ({uid: Account}) together."""
        points = [row.points(criteria) for row in self._checked(unit, people)]
        most = sum(criterion.points for criterion in criteria if not criterion.blocked)
        return {
            "announcement": self.announcement,
            "checked": len(points),
            "median": median(points) if points else None,
            "max": most,
            "full": points.count(most),
            "people": len(people),
        }

    def _checked(self, unit: str, people: Mapping[int, Account]) -> list[Row]:
        rows = self.rows.get(unit, {})
        return [rows[uid] for uid in people if uid in rows]

    def room(
        self, unit: str, criteria: Sequence[Criterion], people: Mapping[int, Account]
    ) -> ClassView:
        """What instructors see: each criterion's numbers, and a row for each of `people`."""
        checked, rows = self._checked(unit, people), self.rows.get(unit, {})
        return {
            **self.of_all(unit, criteria, people),
            "criteria": [
                {
                    **_told(criterion),
                    "passed": sum(row.status(criterion) == PASS for row in checked),
                    "failing": sum(row.status(criterion) == FAIL for row in checked),
                }
                for criterion in criteria
            ],
            "rows": [
                _shown(person, rows.get(person.uid), criteria)
                for person in sorted(people.values(), key=lambda account: account.name)
            ],
        }

    def own(self, unit: str, criteria: Sequence[Criterion], person: Account, of_all: OfAll) -> Own:
        """What an attendee sees: the own row, and the median of the others.

        The median (`of_all`) is shown once it tells of nobody.
        """
        return {
            "announcement": self.announcement,
            "max": of_all["max"],
            "median": of_all["median"] if of_all["checked"] >= ENOUGH else None,
            "criteria": [_told(criterion) for criterion in criteria],
            "rows": [_shown(person, self.rows.get(unit, {}).get(person.uid), criteria)],
        }

    def as_lines(self) -> list[Any]:
        """All that must survive a restart, as plain data."""
        return (
            [asdict(row) for rows in self.rows.values() for row in rows.values()]
            + [{"announcement": self.announcement}]
            + self.predictions.as_lines()
        )

    def from_line(self, line: Any) -> None:
        """Take one of these back; a later line about the same row counts. Raises BadResultError."""
        try:
            if "announcement" in line:
                self.announcement = line["announcement"]
            elif "prediction" in line:
                self.predictions.from_line(line)
            else:
                row = Row(**line)
                self.rows.setdefault(row.unit, {})[row.uid] = row
        except (TypeError, KeyError):
            raise BadResultError("a line that this version does not know") from None


def _read(result: Any) -> tuple[dict[str, tuple[str, str]], str, int]:
    """({key: (status, message)}, verdict, hints) of a result from outside."""
    listed = result.get("criteria") if isinstance(result, dict) else None
    if not isinstance(listed, list) or not all(isinstance(criterion, dict) for criterion in listed):
        raise BadResultError('a result is {"unit": ..., "criteria": [{...}, ...]}')
    cells = {}
    for criterion in listed:
        if criterion.get("status") not in (PASS, FAIL, BLOCKED):
            raise BadResultError(f"a criterion's status is one of {', '.join(CELLS)}")
        message = (
            one_line(criterion.get("message"), LONGEST["message"])
            if criterion["status"] == FAIL
            else ""
        )
        cells[f"{criterion.get('check')}/{criterion.get('name')}"] = criterion["status"], message
    hints = result.get("hints", 0)
    if type(hints) is not int:
        raise BadResultError("hints is the number of hints that were opened")
    return (
        cells,
        one_line(result.get("verdict"), LONGEST["message"]),
        max(0, min(hints, MOST_HINTS)),
    )


def _told(criterion: Criterion) -> Column:
    return {
        "check": criterion.check.removesuffix("-check"),
        "text": criterion.text,
        "points": criterion.points,
    }


def _shown(person: Account, row: Row | None, criteria: Sequence[Criterion]) -> ShownRow:
    """A row as the page gets it."""
    row = row or Row(person.uid, "")
    return {
        "name": person.name,
        "full_name": person.full_name,
        "checked": row.checked,
        "hints": row.hints,
        "points": row.points(criteria),
        "cells": row.signs(criteria),
        "stuck": row.stuck(criteria),
        "messages": {
            place: row.cells[criterion.key]["message"]
            for place, criterion in enumerate(criteria)
            if row.status(criterion) == FAIL
        },
    }


def as_table(unit: str, room: ClassView, now: float | None = None) -> list[list[str]]:
    """The room's rows as a table for a spreadsheet: a list of lists, the head first."""
    now = time.time() if now is None else now
    head: list[object] = [
        "unit",
        "name",
        "full_name",
        "points",
        "max",
        "hints",
        "last_check",
        "stuck_s",
        "stuck_on",
        "message",
    ]
    table = [
        head + [f"{criterion['check']}: {criterion['text']}" for criterion in room["criteria"]]
    ]
    for row in room["rows"]:
        stuck = row["stuck"]
        on = (
            ""
            if not stuck
            else (
                NOTEBOOK
                if stuck["criterion"] is None
                else room["criteria"][stuck["criterion"]]["text"]
            )
        )
        checked = datetime.fromtimestamp(row["checked"]).astimezone()
        when = checked.isoformat(timespec="seconds") if row["checked"] else ""
        words = {letter: word for word, letter in CELLS.items()}
        table.append(
            [
                unit,
                row["name"],
                row["full_name"],
                f"{row['points']:g}",
                f"{room['max']:g}",
                row["hints"],
                when,
                f"{now - stuck['since']:.0f}" if stuck else "",
                on,
                stuck["message"] if stuck else "",
                *(words.get(cell, "") for cell in row["cells"]),
            ]
        )
    return [[_cell(value) for value in line] for line in table]


def _cell(value: object) -> str:
    """A value that no spreadsheet takes for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
