"""A watchdog for a service of the hub.

It ends the process whose event loop no longer turns, and the hub restarts it.

The timer is a thread of the interpreter that needs no lock of it, so it also runs out where the
loop is held by code in C. It writes to the hub's log where each thread was. What a service keeps is
on the disk before it is answered, so nothing is lost with the process.
"""

from __future__ import annotations

import asyncio
import faulthandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn


BEAT_S = 1
TIMEOUT_S = 60  # far more than any single step of a service takes on a busy machine


async def watch(timeout_s: float | None = None) -> NoReturn:
    """Run beside a service, as a task of its loop."""
    while True:
        allow(TIMEOUT_S if timeout_s is None else timeout_s)
        await asyncio.sleep(BEAT_S)


def allow(seconds: float) -> None:
    """Let the loop stand still for this long from now on; its next turn ends this."""
    faulthandler.dump_traceback_later(seconds, exit=True)
