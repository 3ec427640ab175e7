"""Who is at the other end of a connection to the hub, and whose word about that is believed.

Requests come through the proxy, which says from where (X-Forwarded-For); only the proxy is
believed: a process of the hub's own user on this machine. A sandbox comes through the relay, which
connects from an address of the loopback that carries the person's user number. Anybody else, as a
node of a cluster, is taken for what the kernel says.
"""

from __future__ import annotations

import http.cookies
import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tornado import httputil
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPMessageDelegate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from typing import Any

    from manyhands.hub.accounts.table import Account


SANDBOXES = ipaddress.ip_network("127.128.0.0/9")
MOST_BODY_BYTES = 2**20  # of a request to the hub, whose forms and messages are short
SAID = (
    "X-Forwarded-For",
    "X-Real-Ip",
    "X-Forwarded-Proto",
    "X-Scheme",
    "X-Forwarded-Host",
    "Forwarded",
)


def address_of_sandbox(uid: int) -> str:
    """Where the relay connects from for this person.

    Raises OSError for a number that no account has.
    """
    if uid >= SANDBOXES.num_addresses:
        raise OSError(f"user number {uid} does not belong to an account of this hub")
    return str(SANDBOXES[uid])


def place(address: str, accounts: Mapping[str, Account]) -> str:
    """What the log says for an address, and where attempts are counted.

    That is a sandbox, or of IPv6 the network, in which one machine has what addresses it likes.
    """
    ip = ipaddress.ip_address(address)
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.version == 6:
        return str(ipaddress.ip_network((ip, 64), strict=False))
    if ip not in SANDBOXES:
        return str(ip)
    uid = int(ip) - int(SANDBOXES.network_address)
    return next(
        (f"room of {account.name}" for account in accounts.values() if account.uid == uid),
        f"user number {uid}",
    )


class HubServer(HTTPServer):
    """Tornado's server, which believes nobody but the proxy about where a request comes from."""

    def initialize(self, *arguments: Any, **options: Any) -> None:
        """Set the longest body of a request; tornado calls it once."""
        super().initialize(*arguments, **{"max_body_size": MOST_BODY_BYTES, **options})

    def handle_stream(self, stream: Any, address: Any) -> None:
        """Note whether the connection is the proxy's, before anything is read from it."""
        stream.is_proxys = _is_ours(stream.socket)
        super().handle_stream(stream, address)

    def start_request(
        self, server_conn: Any, request_conn: httputil.HTTPConnection
    ) -> HTTPMessageDelegate:
        """Leave out what a request says of its way, unless the proxy sends it."""
        delegate = super().start_request(server_conn, request_conn)
        return delegate if server_conn.stream.is_proxys else _Unheard(delegate)


def read_cookies_quickly() -> None:
    """Let this process decode cookies as tornado does.

    Before Python 3.11.10, a cookie of 14 KB full of backslashes holds the event loop for seconds
    (CVE-2024-7592), and JupyterHub decodes cookies of anybody.
    """
    # of two forms, cookies use the one for texts
    http.cookies._unquote = httputil._unquote_cookie  # type: ignore[assignment]


class _Unheard(HTTPMessageDelegate):
    """Passes a request on without what it says about its way."""

    def __init__(self, delegate: HTTPMessageDelegate) -> None:
        self.delegate = delegate
        # the delegate's own, in the place of our methods
        self.data_received = delegate.data_received  # type: ignore[method-assign]
        self.finish = delegate.finish  # type: ignore[method-assign]
        self.on_connection_close = delegate.on_connection_close  # type: ignore[method-assign]

    def headers_received(
        self,
        start_line: httputil.RequestStartLine | httputil.ResponseStartLine,
        headers: httputil.HTTPHeaders,
    ) -> Awaitable[None] | None:
        for name in SAID:
            headers.pop(name, None)
        return self.delegate.headers_received(start_line, headers)


def _is_ours(connection: socket.socket) -> bool:
    """Whether a process of our own user has opened this connection, and not for a sandbox.

    The process must be on this machine.
    """
    try:
        there, here = connection.getpeername(), connection.getsockname()
        if ipaddress.ip_address(there[0]) in SANDBOXES:
            return False
        ends = [_as_listed(there), _as_listed(here)]
        rows = map(str.split, Path("/proc/net/tcp").read_text().splitlines())
        return any(row[1:3] == ends and row[7] == str(os.geteuid()) for row in rows)
    except OSError:
        return False


def _as_listed(end: tuple[str, int]) -> str:
    """An address and a port as the kernel lists them."""
    return f"{int.from_bytes(socket.inet_aton(end[0]), sys.byteorder):08X}:{end[1]:04X}"
