"""`manyhands lab`: the learner's copies, the start page, JupyterLab."""

from __future__ import annotations

import fcntl
import getpass
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from manyhands.command_line import completed, in_words, refuse, unit_names
from manyhands.command_line import parser as command_parser
from manyhands.learner import start_page
from manyhands.learner.jupyter_server import (
    START_LIMIT_S,
    Server,
    can_open_browser,
    state_folder,
)
from manyhands.learner.prepare import prepare
from manyhands.learner.trust import sign_course
from manyhands.units import NotACloneError, find_root, units

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO


TWICE_WITHIN_S = 10
TOO_LATE = (
    f"JupyterLab did not answer within {START_LIMIT_S // 60} minutes and was stopped. If this "
    "machine is busy with other work, end that first, and then type the same command again."
)


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of `manyhands lab`, and those that JupyterLab gets."""
    parser = command_parser(
        "lab",
        "Open the course in JupyterLab. Labs are copied to work/ once, and nothing in that folder "
        "is ever overwritten.",
        ["", "--new 06", "--no-browser --port=8890"],
        allow_abbrev=False,
        epilog=(
            "All other options are passed to JupyterLab, for example --no-browser, --port=8890, "
            "--ip=0.0.0.0."
        ),
    )
    parser.add_argument(
        "--new",
        metavar="UNIT",
        action="append",
        default=[],
        help=(
            "put a clean copy of the newest version of this unit (06, or 06_ddp) next to yours, as "
            "*.new.ipynb; may be repeated"
        ),
    ).completer = unit_names  # type: ignore[attr-defined]  # argcomplete looks for it
    parser.add_argument(
        "--copy-only",
        action="store_true",
        help="make the copies and the start page, but do not start JupyterLab",
    )
    return completed(parser).parse_known_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run `manyhands lab`: make the copies and open JupyterLab; returns the exit status."""
    options, others = parse(argv)
    try:
        root = find_root()
        prepare(root, [_number(name, root) for name in options.new])
    except (NotACloneError, LookupError) as problem:
        return refuse("lab", problem)
    except OSError as problem:
        return refuse("lab", in_words(problem))
    if options.copy_only:
        return 0
    with open(_lock_path(root), "a+", encoding="utf-8") as lock:
        return _serve_once(root, others, lock)


def _number(name: str, root: Path) -> str:
    """The number of the unit that the learner has named, `06` or `06_ddp`."""
    for unit in units(root):
        if name in (unit.name, unit.number):
            return unit.number
    raise LookupError(
        f"there is no unit {name}; the units are {', '.join(unit.name for unit in units(root))}."
    )


def _lock_path(root: Path) -> Path:
    folder = state_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "lab.lock"


def _serve_once(root: Path, arguments: Sequence[str], lock: TextIO) -> int:
    """One JupyterLab for one clone: a second start names the first one's address."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        print(
            "The course is already open at\n\n   "
            f" {lock.read().strip() or '(it is still starting)'}\n\nTo restart it, stop it first by"
            " pressing Ctrl-C twice where it was started."
        )
        return 0
    port = _last_port(lock)
    lock.truncate(0)
    return _serve(root, arguments, lock, port)


def _last_port(lock: TextIO) -> int:
    """The port of the last start, whose address the file still has; 0 if there was none."""
    lock.seek(0)
    try:
        return urlsplit(lock.read().strip()).port or 0
    except ValueError:
        return 0


def _serve(root: Path, arguments: Sequence[str], lock: TextIO, port: int) -> int:
    server = Server(root, f"work/{start_page.NAME}", arguments, port)
    stop = _Stop(server)
    print("Starting JupyterLab ...", flush=True)
    sign_course(root, state_folder(root) / "data")
    address = server.start()
    if address is None:
        why = TOO_LATE if server.late() else "JupyterLab did not start."
        server.stop()
        server.wait()
        if stop.asked:
            return 0
        print(f"{why} {_end_of(server.log)}", file=sys.stderr)
        return 1
    lock.write(address)
    lock.flush()
    print(_welcome(address), flush=True)
    status = server.wait()
    if status and not stop.asked:
        print(f"JupyterLab ended with status {status}. {_end_of(server.log)}", file=sys.stderr)
        return 1
    print("Stopped.")
    return 0


class _Stop:
    """The signals that end the course.

    Ctrl-C in a terminal must come twice: it is also how people try to copy text.
    """

    def __init__(self, server: Server) -> None:
        self.server, self.asked = server, False
        self.last: float = -TWICE_WITHIN_S
        for name in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(name) != signal.SIG_IGN:  # nohup
                signal.signal(name, self.now)
        signal.signal(signal.SIGINT, self.interrupted)

    def now(self, *_: object) -> None:
        if not self.asked and self.server.process:
            self.asked = True
            print("\nStopping JupyterLab, its kernels and their clusters ...", flush=True)
            self.server.stop()

    def interrupted(self, *_: object) -> None:
        if not sys.stdin.isatty() or time.monotonic() - self.last < TWICE_WITHIN_S:
            self.now()
            return
        self.last = time.monotonic()
        print(
            "\nPress Ctrl-C again to stop JupyterLab with all kernels and clusters. Saved notebooks"
            " are kept.",
            flush=True,
        )


def _welcome(address: str) -> str:
    lines = [
        (
            "The course is open in your browser. If you see no page, open this address:"
            if can_open_browser()
            else "Open this address in a browser:"
        ),
        "",
        f"    {address}",
        "",
    ]
    if "SSH_CONNECTION" in os.environ:
        port = urlsplit(address).port
        lines += [
            "If your browser runs on a different machine, type this command there first:",
            "",
            f"    ssh -N -L {port}:localhost:{port} {getpass.getuser()}@{socket.gethostname()}",
            "",
        ]
    return "\n".join([*lines, "Leave this window open. Press Ctrl-C twice to stop."])


def _end_of(log: Path, lines: int = 20) -> str:
    try:
        tail = log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        tail = []
    return (
        "\n".join([f"The end of its log, {log}:\n", *tail])
        if tail
        else f"Its log, {log}, is empty."
    )
