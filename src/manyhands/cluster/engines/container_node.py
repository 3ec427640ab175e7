"""A node of the containers profile, which waits in its container for notebooks.

Each container runs `python -m manyhands.cluster.engines.container_node`.

It takes the lowest number that no other node holds, and listens on the socket
MANYHANDS_FOLDER/nodes/NUMBER.sock. A notebook sends one line, {"frameworks": ["torch"]}, gets
{"event": "node", "address": ...}, and from then on speaks with a fork server of its own
(fork_server.py). The socket is for its owner only: whoever connects can run programs here, as in
any cluster.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from manyhands.cluster.engines.containers import nodes_folder
from manyhands.cluster.engines.profiles import address

if TYPE_CHECKING:
    from typing import TextIO


# it returns: the numbers have no end
def take_number(folder: str) -> tuple[int, TextIO]:  # type: ignore[return]
    """Take the lowest number that is free and return (number, lock).

    The lock is held for as long as it is open, and the kernel lets go of it when this process ends,
    however it ends.
    """
    for number in itertools.count():
        lock = open(os.path.join(folder, f"{number}.lock"), "a")  # noqa: SIM115 - kept open
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number, lock
        except BlockingIOError:
            lock.close()


def listen(path: str) -> socket.socket:
    """A socket at `path` for this user only; what a node before us has left there is removed."""
    if os.path.exists(path):
        os.unlink(path)
    door = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    door.bind(path)
    os.umask(before)
    door.listen()
    return door


def serve(connection: socket.socket) -> None:
    """Serve one notebook with a fork server that reads from the connection and writes to it.

    Returns when one of them ends.
    """
    with connection:
        first = b""
        while not first.endswith(b"\n"):  # no byte more: the rest is the fork server's
            byte = connection.recv(1)
            if not byte:
                return
            first += byte
        connection.sendall(json.dumps({"event": "node", "address": address()}).encode() + b"\n")
        fork_server = [
            sys.executable,
            "-m",
            "manyhands.cluster.engines.fork_server",
            *json.loads(first)["frameworks"],
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        subprocess.run(
            fork_server,
            stdin=connection.fileno(),
            stdout=connection.fileno(),
            env=environment,
            start_new_session=True,
            check=False,
        )


def main() -> NoReturn:
    """Never returns; SIGTERM ends it, and the container with it."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    folder = nodes_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    number, _lock = take_number(folder)
    with listen(os.path.join(folder, f"{number}.sock")) as door:
        print(f"node {number} waits at {address()}", flush=True)
        while True:
            connection, _ = door.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
