"""What a line of an event's log is: a check of its fields and their types.

A line that is none is passed over, as one that was cut off is: the lines before and after it count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable


MOST_NUMBER = 10**9


class Submit(TypedDict):
    """A team has handed in an entry."""

    do: Literal["submit"]
    number: int
    at: float
    team: str
    challenge: str
    sha256: str
    source: str
    round: int


class Step(TypedDict):
    """What happened to an entry, of which no more is to be told."""

    do: Literal["take", "withdraw", "again", "behind"]
    number: int
    at: float


class Judged(TypedDict):
    """An entry has its signed record."""

    do: Literal["judged"]
    number: int
    at: float
    record: str


class Looked(TypedDict):
    """A person has signed that they have looked at an entry."""

    do: Literal["looked"]
    number: int
    at: float
    look: str


Line = Submit | Step | Judged | Looked


def is_line(line: object) -> TypeGuard[Line]:
    """Whether this is a line that an `Event` writes."""
    if not isinstance(line, dict) or not isinstance(line.get("do"), str):
        return False
    wanted = FIELDS.get(line["do"])
    return (
        wanted is not None
        and set(line) == {"do", *wanted}
        and all(check(line[name]) for name, check in wanted.items())
    )


def _text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # half a letter: it could not be written again
        return False


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST_NUMBER


def _time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value < 2**33


_STEP: dict[str, Callable[[Any], bool]] = {"number": _whole, "at": _time}
FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "submit": {
        **_STEP,
        "team": _text,
        "challenge": _text,
        "sha256": _text,
        "source": _text,
        "round": _whole,
    },
    "take": _STEP,
    "withdraw": _STEP,
    "again": _STEP,
    "judged": {**_STEP, "record": _text},
    "behind": _STEP,
    "looked": {**_STEP, "look": _text},
}
