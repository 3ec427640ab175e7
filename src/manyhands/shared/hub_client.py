"""How an attendee's server reaches the hub's services: in lines of JSON over a Unix socket.

The hub names each service's socket in an environment variable of the server; where the variable is
missing, there is no hub. No token is sent, because a service asks the kernel whose process has
connected. Only the standard library is imported, since a learner's kernel uses this.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedRWPair

BOARD, CHECK_QUEUE = "MANYHANDS_BOARD", "MANYHANDS_PLACES"
TIMEOUT_S = 1  # of the board; a learner must not have to wait for it
# of a message: an entry of 20,000 characters of which JSON writes each in six
LONGEST_BYTES = 2**17
LONGEST_ANSWER_BYTES = 2**16


def as_line(message: object) -> bytes:
    """A message or an answer as it travels: JSON in ASCII, so a character may take twelve bytes."""
    return json.dumps(message).encode() + b"\n"


@contextmanager
def connect(path: str, timeout_s: float) -> Iterator[BufferedRWPair]:
    """Connect to the service at this socket while the block runs; raises OSError."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(path)
        with connection.makefile("rwb") as stream:
            yield stream


def ask_board(message: Mapping[str, Any], timeout_s: float | None = None) -> dict[str, Any]:
    """Send the board a message, and return its answer, or {} if none arrives.

    That is so where there is no board, and where it does not answer in `timeout_s`, by default
    `TIMEOUT_S`.
    """
    path, timeout_s = os.environ.get(BOARD), timeout_s or TIMEOUT_S
    if not path:
        return {}
    lines: list[bytes] = []
    thread = threading.Thread(target=_ask, args=(path, message, lines, timeout_s), daemon=True)
    thread.start()
    thread.join(timeout_s)
    with suppress(IndexError, ValueError):
        answer = json.loads(lines[0])
        return answer if isinstance(answer, dict) else {}
    return {}


def _ask(path: str, message: Mapping[str, Any], lines: list[bytes], timeout_s: float) -> None:
    with suppress(OSError), connect(path, timeout_s) as stream:
        stream.write(as_line(message))
        stream.flush()
        lines.append(stream.readline(LONGEST_ANSWER_BYTES))
