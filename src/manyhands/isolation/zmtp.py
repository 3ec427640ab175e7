"""The grader's end of a kernel's sockets: ZeroMQ's protocol, part by part.

Source: ZMTP 3.0, rfc.zeromq.org/spec/23.

ZeroMQ's own library gathers all parts of a message, however many and however large, before it hands
over the first, and has no limit to that. Here the length of a part is known before it is taken in,
what is too long is thrown away as it comes, and what is not asked for waits in the kernel.
"""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

MORE, LONG, COMMAND = 1, 2, 4  # the flags of a part
MOST_BYTES, MOST_PARTS = 5_000_000, 100  # of a message that is kept
BLOCK_BYTES = 2**18
GREETING = b"\xff" + bytes(8) + b"\x7f" + bytes([3, 0]) + b"NULL".ljust(20, b"\0") + bytes(32)


class ConnectionCutError(Exception):
    """The kernel has cut the connection."""


class Wire:
    """A connection to the kernel's socket at `path`.

    `kind` is ours as ZeroMQ names it: DEALER, or SUB, which hears all. `received` are the bytes
    that have come so far. Until the kernel is `ready`, only `receive` may be called.
    """

    def __init__(self, path: str | Path, kind: str) -> None:
        self.kind, self.ready, self.received, self._data, self._messages = (
            kind,
            False,
            0,
            bytearray(),
            self._reading(),
        )
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(str(path))
            self.socket.sendall(
                GREETING
                + _part(
                    b"\x05READY" + _property("Socket-Type", kind) + _property("Identity", ""),
                    COMMAND,
                )
            )
        except OSError:
            self.close()
            raise ConnectionCutError from None

    def send(self, parts: Sequence[bytes], until: float) -> None:
        """Send a message.

        Raises TimeoutError where the kernel does not take it in time, and ConnectionCutError.
        """
        flags = [MORE] * (len(parts) - 1) + [0]
        self.socket.settimeout(max(0.1, until - time.monotonic()))
        try:
            self.socket.sendall(b"".join(map(_part, parts, flags)))
        except TimeoutError:
            raise
        except OSError:
            raise ConnectionCutError from None

    def receive(self, wait_s: float) -> list[bytes] | None:
        """The parts of the next message, or None if it has not come as a whole.

        There are none if it was too long. Waits once at most, and takes one block.
        """
        message = next(self._messages)
        if message is None and select.select([self.socket], [], [], wait_s)[0]:
            try:
                block = self.socket.recv(BLOCK_BYTES)
                self.received += len(block)
                self._data += block
                message = next(self._messages)
            except OSError:
                block = b""
            if not block:
                raise ConnectionCutError
        return message

    def _reading(self) -> Iterator[list[bytes] | None]:
        """Each message, as soon as its last byte has come; None as long as bytes are missing."""
        yield from self._next(len(GREETING))
        while True:
            parts: list[bytes] = []
            size, count, flags = 0, 0, MORE
            while flags & MORE:
                flags = (yield from self._next(1))[0]
                length = int.from_bytes((yield from self._next(8 if flags & LONG else 1)))
                size, count = size + length, count + 1
                if size > MOST_BYTES or count > MOST_PARTS:
                    parts.clear()
                    yield from self._pass_over(length)
                else:
                    parts.append((yield from self._next(length)))
            if not flags & COMMAND:
                yield parts
            elif not self.ready:
                self.ready = True
                self.socket.sendall(_part(b"\x01") if self.kind == "SUB" else b"")

    def _next(self, length: int) -> Generator[None, None, bytes]:
        while len(self._data) < length:
            yield None
        block = bytes(self._data[:length])
        del self._data[:length]
        return block

    def _pass_over(self, length: int) -> Generator[None, None, None]:
        while length > len(self._data):
            length -= len(self._data)
            self._data.clear()
            yield None
        del self._data[:length]

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


def _part(content: bytes, flags: int = 0) -> bytes:
    if len(content) < 256:
        return bytes([flags, len(content)]) + content
    return bytes([flags | LONG]) + len(content).to_bytes(8) + content


def _property(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + len(value).to_bytes(4) + value.encode()
