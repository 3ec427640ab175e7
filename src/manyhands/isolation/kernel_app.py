"""The kernel that a submission runs in.

It serves sockets that were opened outside, so that the sandbox needs no folder of the host to write
in; and what the grader has not read yet waits in the kernel's own memory, which is limited, and is
never dropped.
"""

from __future__ import annotations

from typing import Any

import zmq
from ipykernel.kernelapp import IPKernelApp
from traitlets import Unicode

from manyhands.kernel_imports import import_ipykernel

import_ipykernel()


class SocketKernelApp(IPKernelApp):
    """ipykernel's application on sockets that are open already.

    It has no heartbeat, which nobody would hear.
    """

    fds = Unicode(help="the descriptors of the listening sockets, in the order of the ports").tag(
        config=True
    )

    def _try_bind_socket(self, socket: zmq.Socket[Any], port: int) -> int:
        socket.setsockopt(zmq.USE_FD, int(self.fds.split(",")[port - 1]))
        socket.setsockopt(zmq.SNDHWM, 0)
        return super()._try_bind_socket(socket, port)

    def init_heartbeat(self) -> None:
        """Start no heartbeat."""
