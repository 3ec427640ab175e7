"""The socket of the board, through which results, predictions and entries come in.

Each connection has a line of JSON, and a line back.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from manyhands.hub.services.check_queue import peer

if TYPE_CHECKING:
    from pathlib import Path

    from manyhands.hub.board.service import Service


CONNECTIONS, TIMEOUT_S = 4, 5  # of one person at the same time; for a message


class Answer(TypedDict, total=False):
    """What the sender of a result or a prediction is told: one of the two."""

    announcement: str  # of the board, "" if there is none
    error: str  # why nothing was taken


class Door:
    """The socket through which results come in."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.connections: Counter[int] = Counter()

    async def listen(self, path: Path) -> asyncio.Server:
        """Returns asyncio's server."""
        from manyhands.shared import hub_client

        path.unlink(missing_ok=True)
        longest = hub_client.LONGEST_BYTES
        server = await asyncio.start_unix_server(self._connected, path, limit=longest, backlog=512)
        path.chmod(0o666)
        return server

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from manyhands.shared import hub_client

        uid = peer(writer.get_extra_info("socket"))
        account = self.service.people.of_uid(uid)
        self.connections[uid] += 1
        try:
            if account and self.connections[uid] <= CONNECTIONS:
                async with asyncio.timeout(TIMEOUT_S):
                    answer = self.service.take(account, await reader.readuntil(b"\n"))
                    writer.write(hub_client.as_line(answer))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # gone, too slow, or too long
        finally:
            self.connections[uid] -= 1
            if not self.connections[uid]:
                del self.connections[uid]
            writer.close()
