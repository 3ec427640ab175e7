"""The hub's service that gives out places for checks, started by the hub.

It is `python -m manyhands.hub.services.check_queue SOCKET PLACES`.

Who connects to the socket stands in the queue, and has a place when its turn has come; who closes
the connection, or dies, leaves. The kernel tells whose process has connected, so nobody stands
there under another's name. A person has one place at most, and no place is kept for more than
`HELD_AT_MOST_S`. `manyhands check` is the other side (`manyhands.grading.hub_client.check_slot`).
The service tells, in lines of JSON,

    {"position": 7, "places": 2, "about_s": 130}    whenever it changes; `about_s` is null as long as no check has ended
    {"place": true}                                 once
    {"refused": "..."}                              in place of these

and listens to nothing: who sends something is cut off.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import struct
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.hub.services import watchdog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, NoReturn


HELD_AT_MOST_S = 1200  # a notebook's own limit is 900 s
REPORT_EVERY_S = 15  # also where nothing changes: who waits knows that we live
SLOT = {"place": True}
VISITS = 4  # connections of one person
UNREAD_BYTES = 2**16  # who does not read what is told is cut off
REFUSED = (
    f"{VISITS} of your checks are already running or waiting. Wait for one of them to end, or stop "
    "it with Ctrl-C."
)


class Visit:
    """One connection: whose it is, and how to tell it something."""

    def __init__(self, uid: int, send: Callable[[dict[str, Any]], object]) -> None:
        self.uid, self.send = uid, send
        self.reported: dict[str, Any] | None = None
        self.since = 0.0  # when it was given a place

    def tell(self, what: dict[str, Any]) -> None:
        """Send this, unless it was the last that was sent."""
        if what != self.reported:
            self.reported = what
            self.send(what)


class Queue:
    """Who has a place, and who waits: first come, first served, one place for a person."""

    def __init__(self, slots: int, now: Callable[[], float] = time.monotonic) -> None:
        self.slots, self.now = slots, now
        self.waiting: list[Visit] = []
        self.holding: list[Visit] = []
        self.lasted: deque[float] = deque(maxlen=20)

    def join(self, visit: Visit) -> bool:
        """False where the person has too many visits."""
        if sum(other.uid == visit.uid for other in self.waiting + self.holding) >= VISITS:
            return False
        self.waiting.append(visit)
        self.renew()
        return True

    def leave(self, visit: Visit) -> None:
        """Take a visit out of the queue, or give its place back."""
        if visit in self.holding:
            self.holding.remove(visit)
            self.lasted.append(self.now() - visit.since)
        elif visit in self.waiting:
            self.waiting.remove(visit)
        self.renew()

    def renew(self) -> None:
        """Give out what is free, and tell the others where they stand."""
        for visit in list(self.waiting):
            if len(self.holding) < self.slots and not self._has_slot(visit):
                self.waiting.remove(visit)
                self.holding.append(visit)
                visit.since = self.now()
                visit.tell(SLOT)
        self.waiting.sort(key=self._has_slot)  # who has a place comes again after all others
        for number, visit in enumerate(self.waiting):
            position = 1 + len({other.uid for other in self.waiting[:number]} - {visit.uid})
            about_s = (
                round(statistics.median(self.lasted) * position / self.slots)
                if self.lasted
                else None
            )
            visit.tell({"position": position, "places": self.slots, "about_s": about_s})

    def _has_slot(self, visit: Visit) -> bool:
        """Whether the person has one, with this visit or another."""
        return any(other.uid == visit.uid for other in self.holding)

    def remind(self) -> None:
        """Tell everybody who waits once more."""
        for visit in self.waiting:
            visit.reported = None
        self.renew()


def peer(connection: socket.socket) -> int:
    """The user number of the process at the other end of a UNIX socket."""
    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", facts)[1]


class Service:
    """The queue behind a socket."""

    def __init__(self, slots: int, held_at_most_s: float = HELD_AT_MOST_S) -> None:
        self.queue, self.held_at_most_s = Queue(slots), held_at_most_s

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its beginning to its end."""
        timer: asyncio.TimerHandle | None = None

        def send(what: dict[str, Any]) -> None:
            nonlocal timer
            writer.write(json.dumps(what).encode() + b"\n")
            if writer.transport.get_write_buffer_size() > UNREAD_BYTES:
                writer.transport.abort()
            if what == SLOT:
                timer = asyncio.get_running_loop().call_later(
                    self.held_at_most_s, writer.transport.abort
                )

        visit = Visit(peer(writer.get_extra_info("socket")), send)
        try:
            if self.queue.join(visit):
                with suppress(OSError):
                    await reader.read(1)  # until the connection ends
            else:
                send({"refused": REFUSED})
        finally:
            if timer:
                timer.cancel()
            self.queue.leave(visit)
            writer.close()

    async def serve(self, path: str | Path) -> NoReturn:
        """Listen at this path, for every user, for ever."""
        await asyncio.start_unix_server(self.handle, path, limit=1024)
        os.chmod(path, 0o666)
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            self.queue.remind()


async def main(path: str | Path, slots: int) -> None:
    """Serve the queue at this path, and watch over the event loop."""
    await asyncio.gather(Service(slots).serve(path), watchdog.watch())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
