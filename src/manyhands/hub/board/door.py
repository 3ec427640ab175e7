"""The socket of the board, through which results, predictions and entries come in: a line of JSON,
a line back.
"""

import asyncio
from collections import Counter

from manyhands.hub.services.check_queue import peer

CONNECTIONS, PATIENCE_S = 4, 5  # of one person at the same time; for a message


class Door:
    """The socket through which results come in."""

    def __init__(self, service):
        self.service, self.connections = service, Counter()

    async def listen(self, path):
        """Returns asyncio's server."""
        from manyhands.learner import board_line

        path.unlink(missing_ok=True)
        longest = board_line.LONGEST_BYTES
        server = await asyncio.start_unix_server(self._connected, path, limit=longest, backlog=512)
        path.chmod(0o666)
        return server

    async def _connected(self, reader, writer):
        from manyhands.learner import board_line

        uid = peer(writer.get_extra_info("socket"))
        account = self.service.people.of_uid(uid)
        self.connections[uid] += 1
        try:
            if account and self.connections[uid] <= CONNECTIONS:
                async with asyncio.timeout(PATIENCE_S):
                    answer = self.service.take(account, await reader.readuntil(b"\n"))
                    writer.write(board_line.as_line(answer))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # gone, too slow, or too long
        finally:
            self.connections[uid] -= 1
            if not self.connections[uid]:
                del self.connections[uid]
            writer.close()
