"""Messages over gloo.

It uses `ProcessGroupGloo`'s send and recv, the same that `torch.distributed.isend` calls.

A gloo call that times out closes its connections for good, so no call here has a time-out. Instead,
receives for heads are posted ahead of time, and their first byte tells whether something has come:
gloo's own thread writes it.
"""

from __future__ import annotations

import datetime
import struct
from collections import deque
from typing import TYPE_CHECKING, Any

import torch

from manyhands.comm.message import as_bytes, make_buffer

if TYPE_CHECKING:
    from torch.distributed import Store, Work

LONG, HEADS, PAYLOADS = 0, 1, 2  # gloo's tags; payloads count on from the last
HEAD_BYTES = 9216  # of a receive that is posted ahead
MARK = struct.Struct("<BI")  # before each head: which of the two it is, and its length
SHORT_HEAD, LONG_HEAD = 1, 2
# receives posted ahead for each peer: a window of 16 heads, and at most as many confirmations
POSTED = 34


class GlooWire:
    """Sends and receives heads and payloads between global ranks.

    Never waits for a peer that has not yet sent.
    """

    name, confirms = "gloo", True  # a large message has left when the peer says so
    # of a wait, before it sleeps between looks: gloo's own thread moves the bytes, and needs a
    # processor
    spin_s = 0.0001
    # how a large tensor is sent, and where it goes
    payload, buffer = staticmethod(as_bytes), staticmethod(make_buffer)

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        # Any: torch's stubs leave out its send and recv
        self._group: Any = torch.distributed.ProcessGroupGloo(
            store, rank, size, datetime.timedelta(days=3650)
        )
        self._posted = {
            peer: deque(self._post(peer) for _ in range(POSTED))
            for peer in range(size)
            if peer != rank
        }
        # (number, work, tensor, whether it is a head): works must live until they are done
        self._under_way: dict[int, deque[tuple[int, Work, torch.Tensor, bool]]] = {
            p: deque() for p in self._posted
        }

    def _post(
        self, peer: int, buffer: torch.Tensor | None = None
    ) -> tuple[Work, torch.Tensor, memoryview]:
        buffer = torch.zeros(HEAD_BYTES, dtype=torch.uint8) if buffer is None else buffer
        memory: Any = buffer.numpy()  # a buffer for type checkers from Python 3.12 on only
        return self._group.recv([buffer], peer, HEADS), buffer, memoryview(memory)

    def poll(self, looks: int) -> tuple[int, bytes] | None:
        """The next head that has come, as (peer, bytes), or None."""
        for peer, posted in self._posted.items():
            if posted[0][2][0]:
                work, buffer, view = posted.popleft()
                work.wait()  # the first byte is here, so the rest is on its way
                kind, length = MARK.unpack_from(view)
                raw = (
                    bytes(view[MARK.size : MARK.size + length])
                    if kind == SHORT_HEAD
                    else self._long(peer, length)
                )
                view[0] = 0
                posted.append(self._post(peer, buffer))
                return peer, raw
        return None

    def _long(self, peer: int, length: int) -> bytes:
        """A head that is too long for the receives that are posted: it follows its announcement."""
        buffer = torch.empty(length, dtype=torch.uint8)
        self._group.recv([buffer], peer, LONG).wait()
        return buffer.numpy().tobytes()

    def send_head(self, peer: int, number: int, raw: bytes) -> None:
        """Send a head; a long one is announced, and follows under a tag of its own."""
        if MARK.size + len(raw) > HEAD_BYTES:
            whole = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
            self._under_way[peer].append(
                (number, self._group.send([whole], peer, LONG), whole, False)
            )
            marked = MARK.pack(LONG_HEAD, len(raw))
        else:
            marked = MARK.pack(SHORT_HEAD, len(raw)) + raw
        tensor = torch.frombuffer(bytearray(marked), dtype=torch.uint8)
        self._under_way[peer].append(
            (number, self._group.send([tensor], peer, HEADS), tensor, True)
        )

    def send_payload(
        self, peer: int, number: int, index: int, payload: torch.Tensor, last: bool
    ) -> None:
        """Send a payload; gloo moves it when the peer fetches it."""
        work = self._group.send([payload], peer, PAYLOADS + number % 2**20 * 16 + index % 16)
        self._under_way[peer].append((number, work, payload, False))

    def fetch(self, peer: int, number: int, index: int, payload: torch.Tensor) -> None:
        """Receive what the peer has announced; returns when it is there.

        ConnectionError if the peer dies before that.
        """
        try:
            self._group.recv([payload], peer, PAYLOADS + number % 2**20 * 16 + index % 16).wait()
        except RuntimeError as error:
            raise ConnectionError(str(error)) from None

    def taken(self, peer: int, number: int) -> None:
        """The peer has taken all messages up to this number: their memory is free."""
        under_way = self._under_way[peer]
        while under_way and under_way[0][0] <= number:
            under_way.popleft()[1].wait()

    def abandon(self, peer: int) -> None:
        """The peer is gone: no more receives from it."""
        self._posted.pop(peer, None)

    def close(self) -> None:
        """Returns when all heads have been sent.

        What is larger goes only when the peer asks for it, which it may never do.
        """
        for under_way in self._under_way.values():
            for _, work, _, head in under_way:
                try:
                    if head:
                        work.wait()
                except RuntimeError:  # the peer has closed its side
                    break
