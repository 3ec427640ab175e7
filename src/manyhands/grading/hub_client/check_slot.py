"""A check's slot on a hub's machine, where many people share few cores.

A check waits until `manyhands.hub.services.check_queue` gives it one.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from manyhands.shared import hub_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedRWPair

TIMEOUT_S = 60  # the service speaks more often than that
LINE_BYTES = 1000
POSITION = "place {position} in the queue, {places} at a time{about} (Ctrl-C leaves it)"
SILENT = "The queue for checks does not answer, so this check continues without a place."


class Say(Protocol):
    """Shows a line; one that `stays` is not replaced by the next."""

    def __call__(self, line: str, stays: bool = False) -> object:
        """Show the line."""


class RefusedError(RuntimeError):
    """The person has too many checks there already; the message says so."""


@contextmanager
def hold(say: Say) -> Iterator[None]:
    """Wait for a slot, and hold it while the block runs.

    The kernel gives it back when this process ends, however it ends. Outside a hub there is nothing
    to wait for. A service that does not answer keeps nobody from a check. Raises RefusedError.

    say: called with a line whenever the position has changed, and with one that `stays` where there
    is no queue to stand in.
    """
    with ExitStack() as held:
        if path := os.environ.get(hub_client.CHECK_QUEUE):
            try:
                _wait(held.enter_context(hub_client.connect(path, TIMEOUT_S)), say)
            except (OSError, ValueError, LookupError):
                say(SILENT, stays=True)
        yield


def _wait(lines: BufferedRWPair, say: Say) -> None:
    """Return when the service has given us a slot."""
    shown = None
    while "place" not in (report := json.loads(lines.readline(LINE_BYTES))):
        if "refused" in report:
            raise RefusedError(report["refused"])
        line = POSITION.format(**report, about=_about(report["about_s"]))
        if line != shown:
            say(line)
        shown = line


def _about(seconds: float | None) -> str:
    """The waiting time that the service estimates, as the end of a sentence, or ""."""
    if seconds is None:
        return ""
    return (
        f", about {seconds / 60:.0f} min"
        if seconds >= 90
        else f", about {max(10, round(seconds, -1))} s"
    )
