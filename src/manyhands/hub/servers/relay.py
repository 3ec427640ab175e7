"""Pass bytes on between two sockets, one on each side of a sandbox's wall.

This is the way from a sandbox to the hub.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.hub.connections import address_of_sandbox
from manyhands.hub.services.check_queue import peer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


CHUNK_BYTES = 65536


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def passing_to(
    connect: Callable[[asyncio.StreamWriter], Awaitable[Ends]],
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A handler for asyncio's servers that joins each connection with another one.

    `await connect(its writer)` gives the other one, as (reader, writer).
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await connect(writer)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_pipe(reader, there_writer), _pipe(there_reader, writer))
        finally:
            writer.close()
            there_writer.close()

    return handle


async def unix_to_port(path: str | Path, port: int) -> asyncio.Server:
    """Outside: connect the socket at `path` with the port on this machine.

    The connection comes from an address that says whose process it is.
    """

    async def connect(writer: asyncio.StreamWriter) -> Ends:
        uid = peer(writer.get_extra_info("socket"))
        return await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(address_of_sandbox(uid), 0)
        )

    return await asyncio.start_unix_server(passing_to(connect), path)


def port_to_unix(port: int, path: str | Path) -> None:
    """Inside: let the port of the sandbox's loopback lead to the socket at `path`.

    It runs in a separate thread, and returns when it listens.
    """
    ready = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(
            passing_to(lambda _: asyncio.open_unix_connection(path)), "127.0.0.1", port
        )
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    if not ready.wait(30):
        raise OSError(f"nothing listens on port {port} of this room")
