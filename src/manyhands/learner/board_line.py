"""A line to the class's board.

It exists only on an attendee's server, where MANYHANDS_BOARD names the board's socket.
"""

import json
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

VARIABLE = "MANYHANDS_BOARD"
TIMEOUT_S = 1
# of a message: an entry of 20,000 characters of which JSON writes each in six
LONGEST_BYTES = 2**17
LONGEST_ANSWER_BYTES = 2**16


def as_line(message: object) -> bytes:
    """A message or an answer as it travels: JSON in ASCII, so a character may take twelve bytes."""
    return json.dumps(message).encode() + b"\n"


def send(message: Mapping[str, Any], timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Send the message as JSON; the board's answer, a dict.

    Takes a second at most, and gives {} where there is no board or it does not answer: nobody must
    wait for it, except a caller that gives a longer `timeout_s`.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return {}
    answers: list[bytes] = []
    thread = threading.Thread(target=_send, args=(path, message, answers, timeout_s), daemon=True)
    thread.start()
    thread.join(timeout_s)
    with suppress(IndexError, ValueError):
        answer = json.loads(answers[0])
        return answer if isinstance(answer, dict) else {}
    return {}


def _send(path: str, message: Mapping[str, Any], answers: list[bytes], timeout_s: float) -> None:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(path)
        connection.sendall(as_line(message))
        with connection.makefile("rb") as stream:
            answers.append(stream.readline(LONGEST_ANSWER_BYTES))
