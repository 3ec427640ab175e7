"""What `manyhands hub` may be asked for.

These are its options, and a sentence for each value that no hub can have.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from manyhands.command_line import parser as command_parser
from manyhands.hub.folder import BOARD, DOORS, PLACES, prepare, sockets
from manyhands.hub.servers import limits
from manyhands.machine import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


DESCRIPTION = """Start a JupyterHub on this machine, with a closed room of local processes for each attendee. `manyhands accounts` makes accounts.
Run it as root for a class, because without root it is a demonstration for one person. Ctrl-C stops it and every server."""
SOCKET_BYTES = 107  # of the path of a socket (man 7 unix)
BYTES = {"M": 2**20, "G": 2**30, "T": 2**40}


N = TypeVar("N", int, float)


class CannotStartError(RuntimeError):
    """The hub cannot start; the message says why and what to do."""


class WrongUsageError(CannotStartError):
    """It was asked for what cannot be."""


def size(text: str) -> int:
    """`512M`, `4G` in bytes."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([MGT])", text.upper().removesuffix("B"))
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size. Write for example 512M or 4G")
    return int(float(match[1]) * BYTES[match[2]])


def between(least: float, most: float, kind: Callable[[str], N] = int) -> Callable[[str], N]:
    """The type of an option that is a number, for argparse."""

    def number(text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} must be a number from {least:g} to {most:g}"
            )
        return value

    return number


def parser() -> argparse.ArgumentParser:
    """Make the parser of `manyhands hub`."""
    usual = limits.Limits()
    made = command_parser(
        "hub", DESCRIPTION, ["", "--ip 0.0.0.0 --port 8000", "--image manyhands:cpu", "--slurm"]
    )
    made.add_argument(
        "--home",
        metavar="FOLDER",
        help="the folder for all its files (default: .manyhands/hub in the clone)",
    )
    made.add_argument(
        "--title",
        default="",
        metavar="TEXT",
        help="the title of the course or workshop on the log-in page",
    )
    made.add_argument(
        "--ip",
        default="127.0.0.1",
        help=(
            "the address to listen on; 0.0.0.0: all of this machine's (default: this machine only)"
        ),
    )
    made.add_argument(
        "--port",
        type=between(0, 65535),
        default=0,
        help="default: the port of the last start, at first a free port",
    )
    made.add_argument(
        "--servers-port",
        type=between(0, 65535),
        default=0,
        help=(
            "the port for people's servers, separate from the hub's (default: the port of the last "
            "start, at first a free port)"
        ),
    )
    made.add_argument(
        "--address", help="the address that attendees type, if it is not http://IP:PORT/"
    )
    made.add_argument(
        "--servers-address",
        default="",
        metavar="ADDRESS",
        help=(
            "with --address: the address of the servers for browsers, if it is not the hub's name "
            "with --servers-port"
        ),
    )
    made.add_argument(
        "--behind",
        action="append",
        default=[],
        metavar="IP",
        help="the address of your proxy in front of this one, whose X-Forwarded-For is trusted",
    )
    made.add_argument("--certificate", default="", metavar="FILE", help="for https, with --key")
    made.add_argument("--key", default="", metavar="FILE")
    made.add_argument(
        "--cpus",
        type=between(0.01, 10_000, float),
        default=usual.cpus,
        help="for each person (default: %(default)g)",
    )
    made.add_argument(
        "--memory",
        type=size,
        default=usual.memory_bytes,
        metavar="SIZE",
        help="for each person (default: 4G)",
    )
    made.add_argument(
        "--processes",
        type=between(1, 10**6),
        default=usual.processes,
        help="for each person, including threads (default: %(default)d)",
    )
    made.add_argument(
        "--disk",
        type=size,
        default=usual.disk_bytes,
        metavar="SIZE",
        help="for each home (default: 2G)",
    )
    made.add_argument(
        "--tidy-up",
        type=between(0, 10**6),
        default=10,
        metavar="MINUTES",
        help="the server of a home that is larger is stopped after this time (default: 10)",
    )
    made.add_argument(
        "--places",
        type=between(1, 10**6),
        default=processors(),
        metavar="N",
        help=(
            "number of `manyhands check`s that run at the same time, while others queue (default: "
            "one for each core)"
        ),
    )
    kind = made.add_mutually_exclusive_group()
    kind.add_argument(
        "--image",
        default="",
        help=(
            "run attendees' servers in containers of this image, usually manyhands:cpu "
            "(docker/README.md), instead of rooms made by bubblewrap"
        ),
    )
    kind.add_argument(
        "--slurm",
        action="store_true",
        help=(
            "run attendees' servers as jobs of Slurm, with attendees as users of the cluster; "
            "variables of sbatch (SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_GRES ...) are passed on "
            "to it"
        ),
    )
    made.add_argument(
        "--hub-name",
        default=socket.gethostname(),
        metavar="HOST",
        help="with --slurm: this machine's name for the nodes (default: %(default)s)",
    )
    made.add_argument(
        "--gpus",
        type=between(0, 1000),
        default=0,
        metavar="N",
        help=(
            "with --image: the number of the machine's GPUs, of which each person gets one in turn"
        ),
    )
    made.add_argument(
        "--idle",
        type=between(1, 10**6),
        default=60,
        metavar="MINUTES",
        help="stop an unused server after this time (default: 60)",
    )
    return made


def check(options: argparse.Namespace) -> None:
    """Check the options together.

    Raises WrongUsageError where they do not go together, or name what this machine does not have.
    """
    if bool(options.certificate) != bool(options.key):
        raise WrongUsageError("https needs both --certificate and --key.")
    if options.servers_address and not options.address:
        raise WrongUsageError(
            "--servers-address also needs --address, because each of them is the address of one of "
            "the two."
        )
    for address in filter(
        None, [options.servers_address, options.servers_address and options.address]
    ):
        if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", address):
            raise WrongUsageError(
                f"{address!r} is not an address for a browser. Write for example "
                "https://class.example/"
            )
    if options.port and options.port == options.servers_port:
        raise WrongUsageError(
            "--port and --servers-port must be different, because browsers tell two origins apart "
            "by their ports."
        )
    for ip in options.behind:
        with _refused(ValueError, f"--behind {ip}: this is not an IP address"):
            ipaddress.ip_address(ip)
    with _refused(
        (OSError, ValueError),
        f"--ip {options.ip[:80]}: this machine has no such address to listen on",
    ):
        socket.create_server((options.ip, 0)).close()
    if options.certificate:
        with _refused(
            OSError,
            "--certificate and --key are not a certificate and its key in PEM without a password",
        ):
            _load(options.certificate, options.key)


@contextmanager
def _refused(kind: type[Exception] | tuple[type[Exception], ...], why: str) -> Iterator[None]:
    """An error of this kind in the block is wrong usage."""
    try:
        yield
    except kind as problem:
        raise WrongUsageError(f"{why} ({problem}).") from None


def _load(certificate: str, key: str) -> None:
    import ssl

    for path in (certificate, key):
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path} is not a plain file")
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
        certificate, key, password=lambda: ""
    )


def check_folder(folder: Path) -> None:
    """Raise WrongUsageError where the path of the hub's folder is too long for its sockets."""
    longest = max(len(os.fsencode(sockets(folder) / name)) for name in (BOARD, DOORS, PLACES))
    if longest > SOCKET_BYTES:
        raise WrongUsageError(
            f"The path of the hub's folder is {longest - SOCKET_BYTES} bytes too long for the "
            "sockets in it. Name a shorter path with --home."
        )


def make_folder(folder: Path) -> None:
    """Make the hub's folder; raises WrongUsageError where that is not possible."""
    with _refused(OSError, f"{folder} cannot be the hub's folder"):
        prepare(folder)
