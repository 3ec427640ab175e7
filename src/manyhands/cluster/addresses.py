"""Find where each rank can be reached, for frameworks that want all addresses beforehand.

TensorFlow's TF_CONFIG is such a list.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import TYPE_CHECKING

from manyhands.cluster.host.ports import reserve

if TYPE_CHECKING:
    from manyhands.cluster.host.ports import Reservation

# the ports that this rank has announced to the others: held until the process ends
_held: list[Reservation] = []


def exchange(timeout_s: float = 30) -> list[str]:
    """Choose a port on each rank's host and return the addresses of all ranks, in rank order.

    The result is ["host:port", ...]; no other process takes these ports.

    All ranks of a cluster call it. It uses MASTER_ADDR and MASTER_PORT, and so must not run while a
    process group of torch does. The port itself stays unbound, so that a framework can bind it;
    each call gives new ones. TimeoutError if a rank does not come.
    """
    meeting = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    host = meeting[0]
    if host != "127.0.0.1":
        from manyhands.cluster.engines.profiles import address

        host = address()
    _held.append(reserve(1, host))
    return meet(
        int(os.environ["RANK"]),
        int(os.environ["WORLD_SIZE"]),
        meeting,
        f"{host}:{_held[-1].ports[0]}",
        timeout_s,
    )


def meet(
    rank: int, world_size: int, meeting: tuple[str, int], text: str, timeout_s: float
) -> list[str]:
    """Collect a text of every rank and return them all, on each rank, in rank order.

    Rank 0 waits at `meeting`, a (host, port) of its own, and hands out the list.
    """
    deadline = time.monotonic() + timeout_s
    try:
        if rank == 0:
            return _collect(world_size, meeting, text, deadline)
        with _reach(meeting, deadline) as connection, connection.makefile("rw") as lines:
            lines.write(json.dumps([rank, text]) + "\n")
            lines.flush()
            answer = lines.readline()
            if not answer:
                raise TimeoutError
            return json.loads(answer)
    except TimeoutError:
        raise TimeoutError(
            f"Not all {world_size} ranks have reported their addresses within {timeout_s:g} s. "
            "All of them must call this function."
        ) from None


def _collect(world_size: int, meeting: tuple[str, int], text: str, deadline: float) -> list[str]:
    texts = {0: text}
    connections: list[socket.socket] = []
    with socket.create_server(meeting, backlog=world_size) as door:
        try:
            while len(texts) < world_size:
                door.settimeout(max(0.01, deadline - time.monotonic()))
                connection, _ = door.accept()
                connections.append(connection)
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                with connection.makefile("r") as lines:
                    rank, received = json.loads(lines.readline())
                texts[rank] = received
            everyone = [texts[rank] for rank in range(world_size)]
            for connection in connections:
                connection.sendall((json.dumps(everyone) + "\n").encode())
            return everyone
        finally:
            for connection in connections:
                connection.close()


def _reach(meeting: tuple[str, int], deadline: float) -> socket.socket:
    """A connection to rank 0, as soon as it listens."""
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        try:
            connection = socket.create_connection(meeting, timeout=left_s)
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            return connection
        except ConnectionRefusedError:
            time.sleep(0.02)
