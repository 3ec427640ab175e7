"""What a record of a judging is, for everything that reads records.

It is one check of all fields and their types.

A signature only says that a record is unchanged: anybody can make a key, and sign anything. So each
reader takes a record from here, or gets a `BadRecordError`, whose message continues the name of the
file.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, cast

from manyhands.shared import signing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import NoReturn

    Check = Callable[[Any], bool]


MOST_BYTES = 2**20
SIGNATURE = "\n%"  # what follows a record is no JSON
MOST_RUNS, MOST_WHOLE, MOST_NUMBER = 20, 2**53, 1e12
YEARS = range(2020, 2100)


class RunRecord(TypedDict, total=False):
    """A run in a record; one of an earlier version has fewer fields."""

    problem: str
    accuracy: float
    clock_s: float
    updates: int
    gradients: list[int]
    messages: list[int]
    sent_bytes: list[int]
    processor_s: list[float]
    most_bytes: list[int]
    telling: list[int]
    gap: float


class Machine(TypedDict, total=False):
    """Where a judging was."""

    system: str
    processors: int


class _Later(TypedDict, total=False):
    """What records of earlier versions do not have, and `lines`, which only these have."""

    lines: int | None
    size: int | None
    seeds_of: str | None
    flags: list[str]


class Record(_Later):
    """What a judging writes, and a judge signs."""

    entry: str
    sha256: str
    challenge: str
    problem: str
    score: float | None
    unit: str
    seeds: list[str]
    runs: list[RunRecord]
    judged: str
    machine: Machine
    versions: dict[str, str]


class _OfEvent(_Later, total=False):
    entry: str
    sha256: str
    challenge: str
    problem: str
    unit: str
    seeds: list[str]
    runs: list[RunRecord]
    judged: str
    machine: Machine
    versions: dict[str, str]


class EventRecord(_OfEvent):
    """A record in an event's log: where the judge gave up, it has a score and a problem only."""

    score: float | None


class BadRecordError(ValueError):
    """This file is no record of a judging."""


class NoFileError(Exception):
    """This path is no file that can be read; the message is a sentence."""


def read_file(path: str | Path) -> bytes:
    """The bytes of a record's file, and no more than a record can have.

    Raises `NoFileError`, `BadRecordError`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise NoFileError(
                f"{path} is not a regular file: name the file that `manyhands hack judge` wrote."
            )
        with open(handle, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise NoFileError(f"there is no file {path}.") from None
    except OSError as problem:
        raise NoFileError(f"{path} cannot be read: {problem.strerror}.") from None
    if len(data) > MOST_BYTES:
        raise BadRecordError(
            f"is longer than {MOST_BYTES} bytes, so it is not a record of a judging"
        )
    return data


def verified(data: bytes) -> tuple[Record, bytes]:
    """(the record, the public key that has signed it) of the bytes of a record's file.

    Raises `signing.BadSignatureError` or `BadRecordError` where the bytes are not a record any more.
    """
    before, public = signing.verified(data)
    return checked(before), public


def checked(data: bytes) -> Record:
    """The record of bytes without a signature, with all its fields; raises `BadRecordError`."""
    record, problem = _object(data)
    missing = [name for name in FIELDS if name not in record and name not in OPTIONAL]
    problem = problem or (
        f"`{missing[0]}` is missing" if missing else _problem(record) or _contradiction(record)
    )
    if problem:
        raise BadRecordError(f"is signed, but is not a record of a judging: {problem}")
    return cast("Record", record)


def of_event(text: str) -> EventRecord:
    """The record in an event's log, which has fewer fields where the judge gave up.

    Raises `BadRecordError`.
    """
    record, problem = _object(text.split(SIGNATURE, 1)[0].encode("utf-8", "surrogatepass"))
    problem = problem or ("`score` is missing" if "score" not in record else _problem(record))
    if problem:
        raise BadRecordError(f"is not a record: {problem}")
    return cast("EventRecord", record)


def judged_s(record: Record) -> float:
    """When the judging was, in seconds since 1970."""
    return datetime.fromisoformat(record["judged"]).timestamp()


def seeds_words(record: Record) -> str:
    """Where the seeds of a record come from, in a sentence."""
    if "seeds_of" not in record:
        return (
            "The record does not say how its seeds were chosen, because it was written by an "
            "earlier version."
        )
    if record["seeds_of"] is None:
        return "The seeds were drawn anew for this judging."
    return (
        f"The seeds were taken from an earlier record ({record['seeds_of'][:16]}), so they were "
        "known before this judging."
    )


# ------------------------------------------------------------ JSON, strictly


def _object(data: bytes) -> tuple[dict[str, Any], str]:
    """(the object of these bytes, what is wrong with them).

    The object is empty where something is wrong.
    """
    try:
        document = json.loads(
            data.decode("utf-8"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_doubles,
        )
    except RecursionError:
        return {}, "it is nested too deeply"
    except UnicodeDecodeError:
        return {}, "it is not text in UTF-8"
    except ValueError as problem:
        return {}, f"it is not JSON ({_short(str(problem))})"
    return (document, "") if isinstance(document, dict) else ({}, "it is not a JSON object")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name appears twice in an object")
    return fields


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:100]


# ------------------------------------------------------------ the fields


def _text(most: int, pattern: str | None = None) -> Check:
    return lambda value: (
        isinstance(value, str)
        and len(value) <= most
        and value.isprintable()
        and (pattern is None or re.fullmatch(pattern, value) is not None)
    )


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST_WHOLE


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value <= MOST_NUMBER


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check, most: int = 100, least: int = 0) -> Check:
    return lambda value: (
        isinstance(value, list) and least <= len(value) <= most and all(map(check, value))
    )


def _object_of(checks: dict[str, Check]) -> Check:
    """An object in which these names, where it has them, have such values."""
    return lambda value: (
        isinstance(value, dict)
        and all(check(value[name]) for name, check in checks.items() if name in value)
    )


def _moment(value: Any) -> bool:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return moment.tzinfo is not None and moment.year in YEARS


_HEX = _text(64, "([0-9a-f]{2})+")
_RUN = _object_of(
    {
        "problem": _text(2000),
        "accuracy": _number,
        "clock_s": _number,
        "updates": _whole,
        "gradients": _list_of(_whole),
        "messages": _list_of(_whole),
        "sent_bytes": _list_of(_whole),
        "processor_s": _list_of(_number),
        "most_bytes": _list_of(_whole),
        "telling": _list_of(_whole),
        "gap": _number,
    }
)
FIELDS: dict[str, tuple[Check, str]] = {  # name: (check, what it must be)
    "entry": (_text(200, ".+"), "text of 1 to 200 printable characters"),
    "sha256": (_HEX, "text of hexadecimal digits"),
    "challenge": (_text(40, "[a-z][a-z0-9_]*"), "the name of a challenge"),
    "problem": (_text(2000), "printable text, empty where there is a score"),
    "score": (_or_none(_number), "a finite number of 0 or more, or null"),
    "unit": (_text(40), "short printable text"),
    "lines": (_or_none(_whole), "a whole number, or null"),  # in records of earlier versions
    "size": (_or_none(_whole), "a whole number, or null"),
    "flags": (_list_of(_text(500), 10), "a list of printable texts"),
    "seeds": (
        _list_of(_HEX, MOST_RUNS, 1),
        f"a list of 1 to {MOST_RUNS} texts of hexadecimal digits",
    ),
    "seeds_of": (_or_none(_HEX), "the SHA-256 of the record that the seeds come from, or null"),
    "runs": (
        _list_of(_RUN, MOST_RUNS, 1),
        f"a list of 1 to {MOST_RUNS} runs with numbers of 0 or more",
    ),
    "judged": (_moment, "a date with time and time zone, as 2026-12-01T09:00:00+00:00"),
    "machine": (
        _object_of({"system": _text(500), "processors": _whole}),
        "an object that describes the machine",
    ),
    "versions": (
        lambda value: isinstance(value, dict) and all(map(_text(200), value.values())),
        "an object of texts",
    ),
}
OPTIONAL = {"lines", "size", "seeds_of", "flags"}


def _problem(record: dict[str, Any]) -> str:
    """What is wrong with the fields that a record has; "" if nothing."""
    for name, (check, wanted) in FIELDS.items():
        if name in record and not check(record[name]):
            return f"`{name}` must be {wanted}, and is {_shown(record[name])}"
    return ""


def _shown(value: object) -> str:
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} that does not fit"
    text = json.dumps(value)  # ASCII
    return text if len(text) <= 40 else f"{text[:40]}..."


def _contradiction(record: dict[str, Any]) -> str:
    """What does not fit together; "" if nothing."""
    if (record["score"] is None) != bool(record["problem"]):
        return "it must have either a score or a problem"
    if len(record["sha256"]) != 64:
        return "`sha256` must have 64 hexadecimal digits"
    if len(record["runs"]) > len(record["seeds"]):
        return "it has more runs than seeds"
    return ""
