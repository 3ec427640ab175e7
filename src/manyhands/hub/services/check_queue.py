"""The hub's service that gives out places for checks:
`python -m manyhands.hub.services.check_queue SOCKET PLACES`, started by the hub.

Who connects to the socket stands in the queue, and has a place when its turn has come; who closes
the connection, or dies, leaves. The kernel tells whose process has connected, so nobody stands
there under another's name. A person has one place at most, and no place is kept for more than
`HELD_AT_MOST_S`. `manyhands check` is the other side (`manyhands.grading.hub_client.check_place`).
The service tells, in lines of JSON,

    {"position": 7, "places": 2, "about_s": 130}    whenever it changes; `about_s` is null as long as no check has ended
    {"place": true}                                 once
    {"refused": "..."}                              in place of these

and listens to nothing: who sends something is cut off.
"""

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

from manyhands.hub.services import watchdog

HELD_AT_MOST_S = 1200  # a notebook's own limit is 900 s
TOLD_EVERY_S = 15  # also where nothing changes: who waits knows that we live
PLACE = {"place": True}
VISITS = 4  # connections of one person
UNREAD_BYTES = 2**16  # who does not read what is told is cut off
REFUSED = (
    f"{VISITS} of your checks are already running or waiting. Wait for one of them to end, or stop "
    "it with Ctrl-C."
)


class Visit:
    """One connection: whose it is, and how to tell it something."""

    def __init__(self, uid, send):
        self.uid, self.send, self.told = uid, send, None
        self.since = None  # when it was given a place

    def tell(self, what):
        if what != self.told:
            self.told = what
            self.send(what)


class Queue:
    """Who has a place, and who waits: first come, first served, one place for a person."""

    def __init__(self, places, now=time.monotonic):
        self.places, self.now = places, now
        self.waiting, self.holding, self.lasted = [], [], deque(maxlen=20)

    def join(self, visit):
        """False where the person has too many visits."""
        if sum(one.uid == visit.uid for one in self.waiting + self.holding) >= VISITS:
            return False
        self.waiting.append(visit)
        self.renew()
        return True

    def leave(self, visit):
        if visit in self.holding:
            self.holding.remove(visit)
            self.lasted.append(self.now() - visit.since)
        elif visit in self.waiting:
            self.waiting.remove(visit)
        self.renew()

    def renew(self):
        """Give out what is free, and tell the others where they stand."""
        for visit in list(self.waiting):
            if len(self.holding) < self.places and not self._has_place(visit):
                self.waiting.remove(visit)
                self.holding.append(visit)
                visit.since = self.now()
                visit.tell(PLACE)
        self.waiting.sort(key=self._has_place)  # who has a place comes again after all others
        for number, visit in enumerate(self.waiting):
            position = 1 + len({one.uid for one in self.waiting[:number]} - {visit.uid})
            about_s = (
                round(statistics.median(self.lasted) * position / self.places)
                if self.lasted
                else None
            )
            visit.tell({"position": position, "places": self.places, "about_s": about_s})

    def _has_place(self, visit):
        """Whether the person has one, with this visit or another."""
        return any(one.uid == visit.uid for one in self.holding)

    def remind(self):
        """Tell everybody who waits once more."""
        for visit in self.waiting:
            visit.told = None
        self.renew()


def peer(connection):
    """The user number of the process at the other end of a UNIX socket."""
    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", facts)[1]


class Service:
    """The queue behind a socket."""

    def __init__(self, places, held_at_most_s=HELD_AT_MOST_S):
        self.queue, self.held_at_most_s = Queue(places), held_at_most_s

    async def handle(self, reader, writer):
        """One connection, from its beginning to its end."""
        timer = None

        def send(what):
            nonlocal timer
            writer.write(json.dumps(what).encode() + b"\n")
            if writer.transport.get_write_buffer_size() > UNREAD_BYTES:
                writer.transport.abort()
            if what == PLACE:
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

    async def serve(self, path):
        """Listen at this path, for every user, for ever."""
        await asyncio.start_unix_server(self.handle, path, limit=1024)
        os.chmod(path, 0o666)
        while True:
            await asyncio.sleep(TOLD_EVERY_S)
            self.queue.remind()


async def main(path, places):
    await asyncio.gather(Service(places).serve(path), watchdog.watch())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
