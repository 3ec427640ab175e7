"""An exception on a rank as plain data, for the notebook."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

from manyhands.cluster.on_rank.stack import is_user_file

if TYPE_CHECKING:
    from manyhands.cluster.payloads import RaisedError, Spot

LONGEST_TEXT = 20_000  # characters of an exception's message, or of its traceback


def describe(error: BaseException) -> RaisedError:
    """An exception as plain data.

    It has its name, its message, the learner's lines that led to it, and the full traceback.
    """
    lines: list[Spot] = [
        {
            "file": os.path.basename(f.filename),
            "path": f.filename,
            "line": f.lineno or 0,
            "function": f.name,
        }
        for f in traceback.extract_tb(error.__traceback__)
        if is_user_file(f.filename)
    ]
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(
            {
                "file": os.path.basename(error.filename or ""),
                "path": error.filename or "",
                "line": error.lineno,
                "function": "",
            }
        )
    full = "".join(traceback.format_exception(error))
    try:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception as unsaid:  # noqa: BLE001 - a __str__ of the learner's
        message = f"(its message cannot be shown, because __str__ raised {type(unsaid).__name__})"
    return {
        "ename": _shown(type(error).__name__),
        "evalue": _shown(message),
        "lines": lines,
        "traceback": _shown(full),
        "memory": is_memory_error(error, message),
    }


def _shown(text: str) -> str:
    """What a page can show of a text.

    It has no lone surrogates, which no encoding has, and is not megabytes long.
    """
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]} ... ({len(text)} characters)"
    return text.encode("utf-8", "backslashreplace").decode()


def is_memory_error(error: BaseException, message: str) -> bool:
    """Whether an exception says that memory has run out, on the CPU or on a GPU."""
    return (
        isinstance(error, MemoryError)
        or "can't allocate memory" in message
        or "CUDA out of memory" in message
    )
