"""What a check cell hands to the grader: plain JSON, made here, compared in `manyhands.grading`.

A record is `{"schema": 1, "name": ..., "criteria": [...]}`; a criterion is `{"name", "text", "points", "status",
"values", "atol", "rtol", "detail"}`. `values` are the evidence: numbers that depend on the seed and on what the
learner's code did.
"""

import math
from numbers import Integral, Real

MIME = "application/vnd.manyhands.record+json"
SCHEMA = 1
PASS, FAIL, BLOCKED = "pass", "fail", "blocked"
MAX_VALUES = 4096
MAX_TEXT = 400


def flatten(values):
    """Any nesting of numbers, strings, arrays and tensors as one flat list that JSON can carry; never raises."""
    flat = []
    _flatten(values, flat, depth=0)
    return flat


def _flatten(value, flat, depth):
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


def plain(value):
    """A tensor, array or numpy scalar as Python numbers; anything else as it is."""
    if isinstance(value, (bool, int, float, str, list, tuple, dict, type(None))):
        return value
    for convert in (lambda: value.tolist(), lambda: value.numpy().tolist()):
        try:
            return convert()
        except Exception:  # a learner's object may do anything here
            continue
    return value


def _scalar(value):
    if value is None or isinstance(value, (bool, str)):
        return value[:MAX_TEXT] if isinstance(value, str) else value
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) < 2**53 else str(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    return f"<{type(value).__name__}>"


def shorten(value):
    """A value in a few words for a reader: numbers to six digits, long lists cut."""
    value = plain(value)
    if isinstance(value, bool) or value is None:
        text = str(value)
    elif isinstance(value, Integral):
        text = str(value)
    elif isinstance(value, Real):
        text = f"{float(value):.6g}"
    elif isinstance(value, (list, tuple)):
        items = [shorten(item) for item in value[:6]] + ["..."] * (len(value) > 6)
        text = "[" + ", ".join(items) + "]"
    elif isinstance(value, str):
        text = value
    else:
        try:
            text = repr(value)
        except Exception:  # a learner's object may do anything here
            text = f"<{type(value).__name__}>"
    return cut(text, MAX_TEXT)


def cut(text, longest):
    """At most so many letters of a text; a cut falls between two words, where none is very long, and "..." follows."""
    if len(text) <= longest:
        return text
    room = longest - 3
    space = text.rfind(" ", 3 * room // 4, room + 1)
    return text[:space if space > 0 else room].rstrip() + "..."
