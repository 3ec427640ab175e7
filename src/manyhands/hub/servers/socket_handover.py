"""How a server fetches the socket that the hub has opened for it.

It does so where the socket cannot be handed in at the server's start, as in a container.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.hub.services.check_queue import peer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn


NO_DOOR = (
    "The hub has no socket for a server of user {uid}, because it was already fetched, or because "
    "the kernel shows the hub a different number."
)


class Doors:
    """Hands each person's door to the first of the person's processes that asks.

    A door is the socket that the server will answer on. The kernel tells whose the process is.
    """

    def __init__(self, path: Path) -> None:
        self.kept: dict[int, socket.socket] = {}
        path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        path.chmod(0o666)
        self.listener.listen()
        self.listener.setblocking(False)
        self.task = asyncio.ensure_future(self._serve())

    def keep(self, uid: int, door: socket.socket) -> None:
        """Keep a door until it is fetched; an older one is closed."""
        if old := self.kept.pop(uid, None):
            old.close()
        self.kept[uid] = door.dup()

    async def _serve(self) -> NoReturn:
        while True:
            with suppress(OSError):  # of one who has gone again
                there, _ = await asyncio.get_running_loop().sock_accept(self.listener)
                with there:
                    if door := self.kept.pop(peer(there), None):
                        with door:
                            socket.send_fds(there, [b"d"], [door.fileno()])


def fetch(path: str) -> int:
    """The number of the socket to answer on, which the hub keeps for us at `path`.

    Raises OSError where it keeps none.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        _, numbers, _, _ = socket.recv_fds(connection, 1, 1)
    if not numbers:
        raise OSError(NO_DOOR.format(uid=os.getuid()))
    return numbers[0]
