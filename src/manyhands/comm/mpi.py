"""Messages over MPI: mpi4py's Isend, Improbe and Irecv on the memory of the tensors themselves.

MPI moves bytes only while some MPI function runs, so whoever waits for anything polls.
"""

import os
import time
from collections import deque

from manyhands.comm.control import CommunicationError
from manyhands.comm.message import as_bytes, make_room

HEADS, PAYLOADS = 1, 2


class MpiWire:
    """Sends and receives heads and payloads between global ranks. Never waits for a peer that has not yet sent."""

    name = "mpi"
    payload, room = staticmethod(as_bytes), staticmethod(make_room)  # how a large tensor is sent, and where it goes

    def __init__(self, key):
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = MPI.COMM_WORLD.Split(0, key)  # a communicator of its own: its messages meet no others
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._status = MPI.Status()
        self._under_way = {peer: deque() for peer in range(self.size)}

    def poll(self):
        """The heads that have come, as (peer, bytes)."""
        MPI, status, missed = self._mpi, self._status, 0
        while missed < 2:  # MPICH's first look only takes in what has come; the second one finds it
            message = self._comm.Improbe(MPI.ANY_SOURCE, HEADS, status)
            if message is None:
                missed += 1
                continue
            missed = 0
            peer, raw = status.Get_source(), bytearray(status.Get_count(MPI.BYTE))
            message.Recv([raw, MPI.BYTE])
            yield peer, raw

    def send_head(self, peer, number, raw):
        self._under_way[peer].append((number, self._comm.Isend([raw, self._mpi.BYTE], peer, HEADS), raw))

    def send_payload(self, peer, number, place, payload):
        view = payload.numpy()
        self._under_way[peer].append((number, self._comm.Isend([view, self._mpi.BYTE], peer, PAYLOADS), view))

    def fetch(self, peer, number, place, payload):
        """Receive what the peer has announced; returns when it is there."""
        request = self._comm.Irecv([payload.numpy(), self._mpi.BYTE], peer, PAYLOADS)
        while not request.Test():
            os.sched_yield()

    def taken(self, peer, number):
        """The peer has taken all messages up to this number: their memory is free."""
        under_way = self._under_way[peer]
        while under_way and under_way[0][0] <= number:
            under_way.popleft()[1].Wait()

    def abandon(self, peer):
        """MPI ends the whole job when a process dies: nothing to do."""

    def close(self):
        """MPI ends with the process: other ranks may still be sending to this one."""


def all_here(timeout_s):
    """Returns the number of processes that MPI has started, once all of them have come by."""
    from mpi4py import MPI

    barrier, deadline = MPI.COMM_WORLD.Ibarrier(), time.perf_counter() + timeout_s
    while not barrier.Test():
        if time.perf_counter() > deadline:
            raise CommunicationError(f"create_communicator: rank {MPI.COMM_WORLD.rank} waited {timeout_s:g} s for the others. All "
                                     f"{MPI.COMM_WORLD.size} ranks that were started together must call it, equally often.")
        time.sleep(1e-4)
    return MPI.COMM_WORLD.size
