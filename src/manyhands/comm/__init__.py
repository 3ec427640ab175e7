"""Ranks, and messages between them.

    from manyhands import comm
    c = comm.create_communicator()

`observers` is a list of functions; while it is not empty, each message of a call is told to all of
them: `observer(kind, peer, nbytes, call, seconds, identity)`. `kind` is "sent" or "received",
`peer` the global rank of the other side, `nbytes` the size of the tensors, `seconds` a
`time.perf_counter()`, and `identity` the same on both sides.
"""

from manyhands.comm.communicator import Communicator
from manyhands.comm.control import CommunicationError
from manyhands.comm.message_queue import observers
from manyhands.comm.start import create_communicator

__all__ = ["CommunicationError", "Communicator", "create_communicator", "observers"]
