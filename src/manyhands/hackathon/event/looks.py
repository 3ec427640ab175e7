"""What a person who has looked at an entry signs: who it was, and whether the entry counts.

A judging may raise flags (`honesty.py`). An entry with a flag does not count on the board until a
person has read it and has said so with `manyhands hack look`. No record and no board claims a look
that no person has signed.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from manyhands.hackathon.event.event_settings import MOST_LETTERS
from manyhands.hackathon.judge import judging_record
from manyhands.shared import signing

if TYPE_CHECKING:
    from pathlib import Path


SUFFIX = ".look"


class Look(NamedTuple):
    """Who has looked, whether the entry counts, and when, in seconds since 1970."""

    by: str
    counts: bool
    at: float


def text(record: str, by: str, counts: bool, at: float) -> bytes:
    """The bytes to sign, about the text of a signed record."""
    return (
        json.dumps({"record": _digest(record), "by": by, "counts": counts, "at": at}).encode()
        + b"\n"
    )


def read(signed: str, record: str) -> Look | None:
    """The `Look` of what was signed.

    None where there is none, or where it is about a different record.
    """
    try:
        look = json.loads(signed.split("\n", 1)[0])
        if (
            look["record"] == _digest(record)
            and isinstance(look["by"], str)
            and look["by"].isprintable()
        ):
            return Look(look["by"][:MOST_LETTERS], look["counts"] is True, float(look["at"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        pass
    return None


def beside(path: Path, public: bytes) -> str:
    """What lies beside the file of a record, signed with the record's key; "" if nothing does."""
    try:
        data = judging_record.read_file(path.with_suffix(SUFFIX))
        if signing.verified(data)[1] == public:
            return data.decode()
    except (judging_record.NoFileError, ValueError):
        # also of a record, of a signature, and of bytes that are no text
        pass
    return ""


def _digest(record: str) -> str:
    return hashlib.sha256(record.encode()).hexdigest()
