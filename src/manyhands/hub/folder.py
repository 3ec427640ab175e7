"""Where a hub keeps what it writes: accounts, the log, its data base, home folders, archives."""

from __future__ import annotations

import os
from pathlib import Path

from manyhands.units import find_root

SOLUTIONS = "staff/solutions"  # shown to instructors' servers alone
LOCK = "hub.lock"  # there once a hub was started, and locked by the one that runs
BOARD = "board.sock"  # the socket of `manyhands.hub.board.service`
# before a command: it ends when the process that started it has gone, however it went
WITH_PARENT = ["setpriv", "--pdeathsig", "TERM", "--"]
DOORS = "doors.sock"  # the socket of `manyhands.hub.servers.socket_handover`
PLACES = "places.sock"  # the socket of `manyhands.hub.services.check_queue`


def hub_folder(named: str | None = None) -> Path:
    """The folder named, `MANYHANDS_HUB`, or the clone's `.manyhands/hub`; raises NotACloneError."""
    named = named or os.environ.get("MANYHANDS_HUB")
    return Path(os.path.realpath(named)) if named else find_root() / ".manyhands" / "hub"


def prepare(folder: str | Path) -> None:
    """Make the hub's folder with its parts.

    Others may pass through it to what is theirs, and list nothing.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, mode in (
        ("", 0o711),
        ("homes", 0o711),
        ("run", 0o711),
        ("run/sockets", 0o755),
        ("tmp", 0o700),
        ("archive", 0o700),
        ("handouts", 0o700),
        ("course", 0o755),
    ):
        part = folder / name
        part.mkdir(exist_ok=True)
        part.chmod(mode)


def sockets(folder: str | Path) -> Path:
    """The folder of the sockets that sandboxes see.

    Who listens there makes a socket of mode 666, and asks the kernel who has connected.
    """
    return Path(folder) / "run" / "sockets"


def is_classroom() -> bool:
    """Only root can give each attendee a user number and a sandbox of their own."""
    return os.geteuid() == 0


def address(folder: str | Path) -> str:
    """Where the hub in this folder was last told to listen, or "" if it never was."""
    try:
        return (Path(folder) / "address").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
