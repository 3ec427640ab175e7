"""On a hub's machine, where many people share few cores:
a check waits for a place (`manyhands.hub.services.check_queue` gives them out).
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKET = "MANYHANDS_PLACES"  # names the service's socket; the hub sets it for attendees' servers
PATIENCE_S = 60  # the service speaks more often than that
LINE_BYTES = 1000
POSITION = "place {position} in the queue, {places} at a time{about} (Ctrl-C leaves it)"
SILENT = "The queue for checks does not answer, so this check continues without a place."


class Say(Protocol):
    """Shows a line; one that `stays` is not replaced by the next."""

    def __call__(self, line: str, stays: bool = False) -> object: ...


class Refused(RuntimeError):
    """The person has too many checks there already; the message says so."""


@contextmanager
def taken(say: Say) -> Iterator[None]:
    """Wait for a place, and hold it while the block runs;
    the kernel gives it back when this process ends, however it ends.

    say: called with a line whenever the position has changed, and with one that `stays` where there
    is no queue to stand in. Outside a hub there is nothing to wait for. A service that does not
    answer keeps nobody from a check. Raises Refused.
    """
    if path := os.environ.get(SOCKET):
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                _wait(connection, path, say)
            except (OSError, ValueError, LookupError):
                say(SILENT, stays=True)
            yield
    else:
        yield


def _wait(connection: socket.socket, path: str, say: Say) -> None:
    """Return when we have a place."""
    connection.settimeout(PATIENCE_S)
    connection.connect(path)
    with connection.makefile("rb") as lines:
        shown = None
        while "place" not in (told := json.loads(lines.readline(LINE_BYTES))):
            if "refused" in told:
                raise Refused(told["refused"])
            line = POSITION.format(**told, about=_about(told["about_s"]))
            if line != shown:
                say(line)
            shown = line


def _about(seconds: float | None) -> str:
    """What is known of the time."""
    if seconds is None:
        return ""
    return (
        f", about {seconds / 60:.0f} min"
        if seconds >= 90
        else f", about {max(10, round(seconds, -1))} s"
    )
