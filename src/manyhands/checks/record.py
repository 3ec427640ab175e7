"""What a check cell hands to the grader.

It is plain JSON, which is made here and compared in `manyhands.grading`.

A record is `{"schema": 1, "name": ..., "criteria": [...]}`, and a criterion is `{"name", "text",
"points", "status", "values", "atol", "rtol", "detail"}`. `values` are the evidence, namely numbers
that depend on the seed and on what the learner's code did.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

MIME = "application/vnd.manyhands.record+json"
SCHEMA = 1
PASS: Final = "pass"
FAIL: Final = "fail"
BLOCKED: Final = "blocked"
MAX_VALUES = 4096
MAX_TEXT = 400  # of a line
MAX_LINES = 6
SHOWN = 6  # of a long list
CLOSE = 1e-9  # a smaller difference is rounding, which is not shown

Scalar = bool | int | float | str | None  # what JSON carries
Status = Literal["pass", "fail", "blocked"]


class Criterion(TypedDict):
    """A criterion of a record. `detail` is what the report shows if it did not pass."""

    name: str
    text: str
    points: float
    status: Status
    values: list[Scalar]
    atol: float
    rtol: float
    detail: dict[str, str]


class Record(TypedDict):
    """What the grader gets of one report."""

    schema: int
    name: str
    criteria: list[Criterion]


def flatten(values: Any) -> list[Scalar]:
    """Any nesting of numbers, strings, arrays and tensors as one flat list that JSON can carry.

    It never raises.
    """
    flat: list[Scalar] = []
    _flatten(values, flat, depth=0)
    return flat


def _flatten(value: Any, flat: list[Scalar], depth: int) -> None:
    if len(flat) >= MAX_VALUES:
        return
    value = plain(value)
    if isinstance(value, dict) and depth < 8:
        value = [item for pair in value.items() for item in pair]
    if isinstance(value, (list, tuple)) and depth < 8:
        for item in value:
            _flatten(item, flat, depth + 1)
    else:
        flat.append(_scalar(value))


def plain(value: Any) -> Any:
    """A tensor, array or numpy scalar as Python numbers, and anything else as it is."""
    if isinstance(value, (bool, int, float, str, list, tuple, dict, type(None))):
        return value
    for convert in (lambda: value.tolist(), lambda: value.numpy().tolist()):
        try:
            return convert()
        except Exception:  # noqa: BLE001 - a learner's object may do anything here
            continue
    return value


def _scalar(value: Any) -> Scalar:
    if value is None or isinstance(value, (bool, str)):
        return value[:MAX_TEXT] if isinstance(value, str) else value
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) < 2**53 else str(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    return f"<{type(value).__name__}>"


def shorten(value: Any) -> str:
    """A value in a few words for a reader, with numbers to six digits and long lists cut."""
    value = plain(value)
    if isinstance(value, bool) or value is None or isinstance(value, Integral):
        text = str(value)
    elif isinstance(value, Real):
        text = f"{float(value):.6g}"
    elif isinstance(value, (list, tuple)):
        items = [shorten(item) for item in value[:SHOWN]] + ["..."] * (len(value) > SHOWN)
        text = "[" + ", ".join(items) + "]"
    elif isinstance(value, str):
        text = value
    else:
        try:
            text = repr(value)
        except Exception:  # noqa: BLE001 - a learner's object may do anything here
            text = f"<{type(value).__name__}>"
    return cut(text, MAX_TEXT)


def tell_apart(expected: Any, got: Any) -> list[str]:
    """Both values in a few words.

    If these words are the same, or a cut hides the first difference between two lists, each ends
    with its value at the place of the difference.
    """
    texts = [shorten(expected), shorten(got)]
    place = _first_difference(plain(expected), plain(got))
    if not place or (texts[0] != texts[1] and all(index < SHOWN for index in place)):
        return texts
    where = "".join(f"[{index}]" for index in place)
    ends = [f"; {where}: {_exactly(value, place)}" for value in (expected, got)]
    return [cut(text, MAX_TEXT - len(end)) + end for text, end in zip(texts, ends, strict=True)]


def _first_difference(expected: Any, got: Any) -> tuple[int, ...] | None:
    """The indices that lead to the first place where two nested lists differ.

    () for values that are not lists, None if they do not differ.
    """
    if not (isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple))):
        if isinstance(expected, Real) and isinstance(got, Real):
            return None if math.isclose(expected, got, rel_tol=CLOSE, abs_tol=CLOSE) else ()
        return None if shorten(expected) == shorten(got) else ()
    for index, (a, b) in enumerate(zip(expected, got, strict=False)):
        inside = _first_difference(plain(a), plain(b))
        if inside is not None:
            return (index, *inside)
    return None if len(expected) == len(got) else (min(len(expected), len(got)),)


def _exactly(value: Any, place: Sequence[int]) -> str:
    """The value at a place in nested lists, a number to twelve digits."""
    for index in place:
        value = plain(value)
        if index >= len(value):
            return "nothing more"
        value = value[index]
    value = plain(value)
    number = isinstance(value, Real) and not isinstance(value, bool)
    return f"{float(value):.12g}" if number else cut(shorten(value), MAX_TEXT // 4)


def shorten_lines(text: object) -> str:
    """A text for a reader, in which each line is cut on its own.

    The last of several lines is often the cause.
    """
    lines = str(text).split("\n")
    return "\n".join(
        cut(line, MAX_TEXT) for line in lines[:MAX_LINES] + ["..."] * (len(lines) > MAX_LINES)
    )


def cut(text: str, longest: int) -> str:
    """At most `longest` characters of a text.

    A cut is between two words unless one is very long, and "..." follows.
    """
    if len(text) <= longest:
        return text
    room = longest - 3
    space = text.rfind(" ", 3 * room // 4, room + 1)
    return text[: space if space > 0 else room].rstrip() + "..."
