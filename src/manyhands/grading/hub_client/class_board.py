"""Telling a class's board of a result: only on an attendee's server, where MANYHANDS_BOARD names the board's socket.

The board shows what it is told as the person's own; grades come from grading only.
"""

import json
import os
import socket
import threading
from contextlib import suppress

from manyhands.checks.record import FAIL, cut
from manyhands.grading.compare import in_a_line

VARIABLE = "MANYHANDS_BOARD"
PATIENCE_S = 1
LONGEST, LONGEST_ANSWER = 200, 4096


def tell(grade, hints):
    """Tell the board of a grade and of how many hints were opened; returns the class's announcement, or "".

    Takes a second at most, and says nothing where there is no board or it does not answer: a check must not wait for
    it.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return ""
    answers = []
    thread = threading.Thread(target=_send, args=(path, _message(grade, hints), answers), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    with suppress(IndexError, ValueError, TypeError, KeyError):
        return in_a_line(json.loads(answers[0])["announcement"], LONGEST)
    return ""


def _send(path, message, answers):
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(path)
        connection.sendall(json.dumps(message).encode() + b"\n")
        with connection.makefile("rb") as stream:
            answers.append(stream.readline(LONGEST_ANSWER))


def _message(grade, hints):
    criteria = [{"check": one.check, "name": one.name, "status": one.status, "message": _why(one)}
                for one in grade.criteria]
    return {"unit": grade.unit, "verdict": grade.verdict, "criteria": criteria, "hints": hints}


def _why(criterion):
    """One line: the likely mistake, else what was expected and what came."""
    if criterion.status != FAIL:
        return ""
    told = criterion.detail
    words = [told[key] for key in ("mistake", "problem") if key in told] or [
        f"{key}: {value}" for key, value in told.items()
    ]
    return cut(in_a_line(" ".join(map(str, words)), 10 * LONGEST), LONGEST)
