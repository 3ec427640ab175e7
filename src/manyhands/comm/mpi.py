"""Messages over MPI: mpi4py's Isend, Improbe and Irecv on the memory of the tensors themselves.

MPI moves bytes only while some MPI function runs, so whoever waits for anything polls.
"""

import os
import time
from collections import deque

from manyhands.comm.control import CommunicationError
from manyhands.comm.message import make_room, plain

HEADS, PAYLOADS = 1, 2
LOOKS = 8  # before others may compute: one look may only take in what has come, and a busy machine comes back after milliseconds


class MpiWire:
    """Sends and receives heads and payloads between global ranks. Never waits for a peer that has not yet sent."""

    name, confirms = "mpi", False  # `left` says when a large message has left
    payload, room = staticmethod(plain), staticmethod(make_room)  # how a large tensor is sent, and where it goes

    def __init__(self, key):
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = MPI.COMM_WORLD.Split(0, key)  # a communicator of its own: its messages meet no others
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._status = MPI.Status()
        self._under_way = {peer: deque() for peer in range(self.size)}

    def poll(self):
        """The heads that have come, as (peer, bytes)."""
        MPI, status = self._mpi, self._status
        look = self._comm.Improbe
        while message := look(MPI.ANY_SOURCE, HEADS, status) or look(MPI.ANY_SOURCE, HEADS, status):  # MPICH's first look may only take in what has come
            peer, raw = status.Get_source(), bytearray(status.Get_count(MPI.BYTE))
            message.Recv([raw, MPI.BYTE])
            yield peer, raw

    def send_head(self, peer, number, raw):
        self._under_way[peer].append((number, self._comm.Isend([raw, self._mpi.BYTE], peer, HEADS), raw))

    def send_payload(self, peer, number, place, payload):
        request = self._comm.Issend(self._memory(payload), peer, PAYLOADS)  # done when the peer receives it
        self._under_way[peer].append((number, request, payload))

    def left(self, peer, number):
        """Whether the peer has taken all messages up to this number."""
        under_way = self._under_way[peer]
        while under_way and under_way[0][0] <= number:
            if not under_way[0][1].Test():
                return False
            under_way.popleft()
        return True

    def fetch(self, peer, number, place, payload):
        """Receive what the peer has announced; returns when it is there."""
        request = self._comm.Irecv(self._memory(payload), peer, PAYLOADS)
        while not any(request.Test() for _ in range(LOOKS)):
            os.sched_yield()

    def _memory(self, tensor):
        """The tensor's memory, for mpi4py; the tensor must outlive it."""
        return self._mpi.buffer.fromaddress(tensor.data_ptr(), tensor.nbytes)

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
