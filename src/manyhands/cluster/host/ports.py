"""Ports that no other process takes between the choice and the use.

Binding to port 0 is the best way to get a port, but some addresses must be known beforehand: a
rendezvous, every task in TF_CONFIG. Choosing a free port and hoping is a race that twenty learners
on one machine lose. So a port that we choose is also held, for as long as the process lives, by a
name that the kernel gives to one process only.
"""

from __future__ import annotations

import errno
import random
import socket
import sys

# below Linux's ephemeral range: the kernel gives none of these to an outgoing connection
FIRST, LAST = 20000, 31999
_draw = random.SystemRandom()  # not the generator that a learner seeds


class Reservation:
    """Ports held by this process.

    `.ports` lists them; `.close()` lets them go; also a context manager.
    """

    def __init__(self, ports: list[int], holders: list[socket.socket]) -> None:
        self.ports = ports
        self._holders = holders

    def close(self) -> None:
        """Let go of the ports, so that other users may get them."""
        for holder in self._holders:
            holder.close()
        self._holders = []

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Reservation({self.ports}, {'held' if self._holders else 'let go'})"


def reserve(n: int = 1, host: str = "127.0.0.1") -> Reservation:
    """Choose `n` free TCP ports on `host`, an address of this machine, and hold them.

    Returns a `Reservation`.

    All users of this machine who call `reserve` get different ports. The kernel lets go of them
    when the process ends, however it ends. The ports themselves stay unbound, so that a framework
    can bind them.
    """
    candidates = _candidates()
    ports: list[int] = []
    holders: list[socket.socket] = []
    for port in _draw.sample(candidates, len(candidates)):
        if len(ports) == n:
            break
        holder = _hold(port)
        if holder is None:
            continue
        if _is_free(port, host):
            ports.append(port)
            holders.append(holder)
        else:
            holder.close()
    reservation = Reservation(ports, holders)
    if len(ports) < n:
        reservation.close()
        raise RuntimeError(
            f"{n} ports were requested, but only {len(ports)} of {FIRST}-{LAST} are free on {host}:"
            " stop some clusters."
        )
    return reservation


def _candidates() -> list[int]:
    """The ports from FIRST to LAST that are outside the machine's ephemeral range.

    All of them if none is outside.
    """
    low, high = _ephemeral_range()
    outside = [port for port in range(FIRST, LAST + 1) if not low <= port <= high]
    return outside or list(range(FIRST, LAST + 1))


def _ephemeral_range() -> tuple[int, int]:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            low, high = map(int, file.read().split())
            return low, high
    except OSError:
        return 49152, 65535  # the range that IANA names, and that of macOS


def _hold(port: int) -> socket.socket | None:
    """Take the machine-wide name of the port; None if another process has it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if not sys.platform.startswith("linux"):
        return holder  # no abstract sockets: only the bind test protects
    try:
        holder.bind(f"\0manyhands-port-{port}")
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return holder


def _is_free(port: int, host: str) -> bool:
    """Can the port be bound, on `host` and on all addresses?

    Without SO_REUSEADDR, so that one in TIME_WAIT counts as taken.
    """
    addresses = [(socket.AF_INET, host), (socket.AF_INET, "")]
    if socket.has_dualstack_ipv6():
        addresses.append((socket.AF_INET6, "::"))
    for family, address in addresses:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    return False
                raise ValueError(
                    f"{address!r} is not an address of this machine ({error.strerror})"
                ) from error
    return True
