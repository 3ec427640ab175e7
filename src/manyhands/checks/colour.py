"""Colour on a terminal, unless NO_COLOR asks for none (https://no-color.org)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from manyhands.checks.record import BLOCKED, FAIL, PASS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

CODES = {PASS: "32", FAIL: "31", BLOCKED: "90"}  # green, red, grey: of the reader's own palette


def may_colour(stream: TextIO) -> bool:
    """Whether text on this stream may be in colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def colour_lines(lines: Iterable[str], stream: TextIO) -> list[str]:
    """The lines of a report, in colour if the stream is a terminal that may have it.

    Only the word that begins a criterion (PASS, FAIL, BLOCKED) is coloured.
    """
    return [_painted(line) for line in lines] if may_colour(stream) else list(lines)


def _painted(line: str) -> str:
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    code = CODES.get(word.lower()) if word.isupper() else None
    return line.replace(word, f"\x1b[{code}m{word}\x1b[0m", 1) if code else line
