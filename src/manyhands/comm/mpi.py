"""Messages over MPI: mpi4py's Isend, Improbe and Irecv on the memory of the tensors themselves.

MPI moves bytes only while some MPI function runs, so whoever waits for anything polls.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from manyhands.comm.control import CommunicationError
from manyhands.comm.message import contiguous_on_cpu, make_buffer

if TYPE_CHECKING:
    import torch

# else it warns, at a rank's end, of each goodbye that came after the rank's own
os.environ.setdefault("UCX_LOG_LEVEL", "error")
HEADS, PAYLOADS = 1, 2
# for a payload, before others may compute: each moves a part of it, and a busy machine comes back
# after milliseconds
FETCH_LOOKS = 30
LEFT_LOOKS = 4  # whether one has left, before the next look for a message


class MpiWire:
    """Sends and receives heads and payloads between global ranks.

    Never waits for a peer that has not yet sent.
    """

    name, confirms = "mpi", False  # `left` says when a large message has left
    spin_s = 0.002  # of a wait, before it sleeps between looks: each look moves bytes
    # how a large tensor is sent, and where it goes
    payload, buffer = staticmethod(contiguous_on_cpu), staticmethod(make_buffer)

    def __init__(self, key: int) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        # a communicator of its own: its messages meet no others
        self._comm = MPI.COMM_WORLD.Split(0, key)
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._status, self._any = MPI.Status(), MPI.ANY_SOURCE
        self._under_way: dict[int, deque[tuple[int, Any, Any]]] = {
            peer: deque() for peer in range(self.size)
        }
        self._taken = dict.fromkeys(self._under_way, 0)

    def poll(self, looks: int) -> tuple[int, bytearray] | None:
        """The next head that has come, as (peer, bytes), or None.

        MPICH's first look may only take in what has come.
        """
        look, status = self._comm.Improbe, self._status
        for _ in range(looks):
            if message := look(self._any, HEADS, status):
                raw = bytearray(status.count)
                message.Recv(raw)
                return status.source, raw
        return None

    def send_head(self, peer: int, number: int, raw: bytes) -> None:
        """Send a head, and let go of what the peer has taken meanwhile."""
        request, under_way = self._comm.Isend(raw, peer, HEADS), self._under_way[peer]
        under_way.append((number, request, raw))
        # now, when nobody waits for this rank
        while under_way and under_way[0][0] <= self._taken[peer]:
            under_way.popleft()[1].Wait()

    def send_payload(
        self, peer: int, number: int, index: int, payload: torch.Tensor, last: bool
    ) -> None:
        """Send a payload; the last one of a message is done only when the peer receives it."""
        # Issend is done when the peer receives it, and MPI then sends a word back: one for each
        # message, for thousands fill a queue that the peer must empty
        send = self._comm.Issend if last else self._comm.Isend
        request = send(self._memory(payload), peer, PAYLOADS)
        self._under_way[peer].append((number, request, payload))

    def left(self, peer: int, number: float) -> bool:
        """Whether the peer has taken all messages up to this number."""
        under_way = self._under_way[peer]
        while under_way and under_way[0][0] <= number:
            if not _done(under_way[0][1], LEFT_LOOKS):
                return False
            under_way.popleft()
        return True

    def fetch(self, peer: int, number: int, index: int, payload: torch.Tensor) -> None:
        """Receive what the peer has announced; returns when it is there."""
        request = self._comm.Irecv(self._memory(payload), peer, PAYLOADS)
        while not _done(request, FETCH_LOOKS):
            os.sched_yield()

    def _memory(self, tensor: torch.Tensor) -> Any:
        """The tensor's memory, for mpi4py; the tensor must outlive it."""
        return self._mpi.buffer.fromaddress(tensor.data_ptr(), tensor.nbytes)

    def taken(self, peer: int, number: int) -> None:
        """The peer has taken all messages up to this number."""
        self._taken[peer] = number

    def abandon(self, peer: int) -> None:
        """MPI ends the whole job when a process dies: nothing to do."""

    def close(self) -> None:
        """MPI ends with the process: other ranks may still be sending to this one."""


def _done(request: Any, looks: int) -> bool:
    return any(request.Test() for _ in range(looks))


def wait_for_all(timeout_s: float) -> int:
    """Returns the number of processes that MPI has started, once all of them have come by."""
    from mpi4py import MPI

    barrier, deadline = MPI.COMM_WORLD.Ibarrier(), time.perf_counter() + timeout_s
    while not barrier.Test():
        if time.perf_counter() > deadline:
            raise CommunicationError(
                f"create_communicator: rank {MPI.COMM_WORLD.rank} waited {timeout_s:g} s for the "
                f"others. All {MPI.COMM_WORLD.size} ranks that were started together must call "
                "it, equally often."
            )
        time.sleep(1e-4)
    return MPI.COMM_WORLD.size
