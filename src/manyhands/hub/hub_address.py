"""Where a hub is to be found: its ports, and the address that papers name.

They are known before its first start, too.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hub.folder import address

if TYPE_CHECKING:
    from manyhands.cluster.host.ports import Reservation


ADDRESS = "address"  # the file that `manyhands.hub.folder.address` reads
EVERYWHERE = "0.0.0.0"
_held: list[Reservation] = []  # reservations of ports, for as long as this process lives


def free_ports(count: int) -> list[int]:
    """Ports that no other program is given before the hub's parts have bound them."""
    from manyhands.cluster.host.ports import reserve

    reservation = reserve(count)
    _held.append(reservation)
    return reservation.ports


def port_of(folder: str | Path, asked: int, name: str = "port") -> int:
    """The port asked for, else that of the last start, else a free one.

    With the port of the last start, printed slips stay right.
    """
    file = Path(folder) / name
    port = asked
    with suppress(OSError, ValueError):
        last = int(file.read_text(encoding="utf-8"))
        socket.create_server(("127.0.0.1", last)).close()
        port = port or last
    port = port or free_ports(1)[0]
    file.write_text(f"{port}\n", encoding="utf-8")
    return port


def own_ip() -> str:
    """This machine's address for others: that of the way out; 127.0.0.1 where there is none.

    Nothing is sent.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way, suppress(OSError):
        way.connect(("192.0.2.1", 9))  # an address of nobody (RFC 5737)
        return way.getsockname()[0]
    return "127.0.0.1"


def shown(ip: str) -> str:
    """What others type for the address that a hub listens on."""
    return own_ip() if ip == EVERYWHERE else ip


def note(folder: str | Path, where: str) -> str:
    """Keep the address of a hub that starts; returns the former one.

    It is the address that papers have named until then, or "" where it is the same.
    """
    before = address(folder)
    (Path(folder) / ADDRESS).write_text(f"{where}\n", encoding="utf-8")
    return before if before != where else ""


def promised(folder: str | Path, ip: str) -> str:
    """The address that a hub in this folder will have when it listens on `ip`.

    The hub was never started; its port is kept for it.
    """
    where = f"http://{shown(ip)}:{port_of(folder, 0)}/"
    note(folder, where)
    return where
