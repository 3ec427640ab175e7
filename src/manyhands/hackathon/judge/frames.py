"""What a rank and the judge send each other: a head of JSON, and bytes behind it.

Nothing here opens a pickle.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import socket


MOST_HEAD_BYTES, MOST_PAYLOAD_BYTES = 2**12, 2**22
_LENGTHS = struct.Struct("!II")


class BrokenMessageError(Exception):
    """The other side has sent something that is no frame."""


def pack(head: dict[str, Any], payload: bytes = b"") -> bytes:
    """Return a message as the bytes that are sent."""
    text = json.dumps(head).encode()
    return _LENGTHS.pack(len(text), len(payload)) + text + payload


def lengths(data: bytes | bytearray) -> tuple[int, int]:
    """(bytes of the head, bytes of the payload) that follow these 8 bytes."""
    head, payload = _LENGTHS.unpack(data)
    if head > MOST_HEAD_BYTES or payload > MOST_PAYLOAD_BYTES:
        raise BrokenMessageError(f"A message may have at most {MOST_PAYLOAD_BYTES >> 20} MiB.")
    return head, payload


def unpack(text: bytes) -> dict[str, Any]:
    """Return the head of a message; raises BrokenMessageError."""
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        raise BrokenMessageError("A message to the judge was not JSON.") from None
    if not isinstance(head, dict):
        raise BrokenMessageError("A message to the judge was not a JSON object.")
    return head


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """The next (head, payload) from a socket that waits; for a rank."""
    head, payload = lengths(_exactly(connection, _LENGTHS.size))
    return unpack(bytes(_exactly(connection, head))), _exactly(connection, payload)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise EOFError("The judge has closed the connection.")
        view = view[count:]
    return data


async def read(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytearray]:
    """The next (head, payload) from a stream of asyncio; for the judge."""
    head, payload = lengths(await reader.readexactly(_LENGTHS.size))
    return unpack(await reader.readexactly(head)), bytearray(await reader.readexactly(payload))
