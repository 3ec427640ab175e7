"""What a line of an event's log is: a check of its fields and their types, for whoever reads the
log.

A line that is none is passed over, as one that was cut off is: the lines before and after it count.
"""

import math

MOST_NUMBER = 10**9


def is_line(found):
    """Whether this is a line that an `Event` writes."""
    wanted = (
        isinstance(found, dict) and isinstance(found.get("do"), str) and FIELDS.get(found["do"])
    )
    return (
        bool(wanted)
        and set(found) == {"do", *wanted}
        and all(check(found[name]) for name, check in wanted.items())
    )


def _text(value):
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # half a letter: it could not be written again
        return False


def _whole(value):
    return type(value) is int and 0 <= value < MOST_NUMBER


def _time(value):
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value < 2**33


_STEP = {"number": _whole, "at": _time}
FIELDS = {
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
