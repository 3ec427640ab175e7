"""Start and stop an attendee's server.

`InTurn` has what all kinds of servers share, `SandboxSpawner` a sandbox on this machine.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import sys
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import psutil
from jupyterhub.spawner import LocalProcessSpawner
from jupyterhub.utils import can_connect
from traitlets import Any, Integer, Unicode
from traitlets.config import Configurable

from manyhands.hub.accounts import account_log
from manyhands.hub.accounts.archive import make_home
from manyhands.hub.accounts.table import INSTRUCTOR, Accounts
from manyhands.hub.folder import BOARD, PLACES, SOLUTIONS, address, is_classroom, sockets
from manyhands.hub.servers import limits, relay, sandbox
from manyhands.machine import local_time

if TYPE_CHECKING:
    from asyncio import Server
    from collections.abc import AsyncIterator

    from manyhands.hub.accounts.table import Account


STARTS_AT_ONCE = 2 * (os.cpu_count() or 1)  # more would make each of them slower, and none earlier
WAITS = "Other people's servers start first: {count} before yours."
STARTING = "Your server is starting. This takes some seconds."
ENDED_AT_ONCE = "The server ended while it was starting. Its log is {log} on the hub's machine."
NOTICE = (
    "open until {end}. A server that is not used for {minutes} minutes is stopped, and so is an "
    "unused kernel with its cluster, but files are kept."
)
OF_THE_BOARD = (
    " [The board]({address}) shows your checks, the median of the class, and announcements."
)
NOT_WANTED = "No one waits for this server any more."
NOT_OPEN = "This account has been closed."
SERVER = ["-P", "-m", "manyhands.hub.servers.attendee_server"]  # a program for Python
KEPT = ["LANG", "LC_ALL", "TZ", "MANYHANDS_PATIENCE_S"]  # of the hub's own environment


if TYPE_CHECKING:
    from jupyterhub.spawner import Spawner as _Completed
else:
    _Completed = Configurable


class InTurn(_Completed):
    """What every server of a class has.

    It starts when its turn has come, for an open account only, and is told about the hub by
    environment variables.

    Mixed into a spawner of JupyterHub's, which completes it: `await start_for(account, home, door)`
    starts the server, to listen on the socket `door`.
    """

    folder = Unicode(help="the hub's folder").tag(config=True)
    exchange = Unicode(
        help="the folder through which labs are fetched and handed in; empty: none"
    ).tag(config=True)
    limits = Any(help="a Limits").tag(config=True)
    idle_s = Integer(
        3600, help="an unused server is stopped after this time, which the person is told"
    ).tag(config=True)
    # whether there are any: the person then sees home, course and sockets under the names that
    # sandboxes have
    walls = True
    near = True  # whether servers run on the hub's machine, and reach its sockets
    _relay: Server | None = None  # one for the hub: its socket that sandboxes see
    # for the hub, too: spawners in the order in which they came
    _starts = asyncio.Semaphore(STARTS_AT_ONCE)
    _waiting: ClassVar[list[InTurn]] = []

    async def start(self) -> tuple[str, int]:
        """Start the server, a few at a time; returns the address that it answers on.

        Raises RuntimeError for an account that is not open.
        """
        self._waiting.append(self)
        try:
            await self._starts.acquire()
        finally:
            self._waiting.remove(self)
        try:
            return await self._start_now()
        finally:
            self._starts.release()

    async def progress(self) -> AsyncIterator[dict[str, str]]:
        """What the page says to who waits for the server."""
        reported = None
        while self._start_pending:
            text = self.situation()
            if text != reported:
                yield {"message": text}
            reported = text
            await asyncio.sleep(1)

    def situation(self) -> str:
        """Where the person's server stands while it starts."""
        return (
            WAITS.format(count=self._waiting.index(self)) if self in self._waiting[1:] else STARTING
        )

    def open_account(self) -> Account:
        """The person's account; raises RuntimeError where it is not open."""
        account = Accounts(self.folder).get(self.user.name)
        if account.state != "open":
            raise RuntimeError(NOT_OPEN)
        return account

    async def _start_now(self) -> tuple[str, int]:
        if not self._start_pending:
            raise RuntimeError(NOT_WANTED)
        account, home = self.open_account(), Accounts(self.folder).home(self.user.name)
        make_home(account, home)
        await self._open_relay()
        # the server will listen on it: until then connections are refused
        with socket.socket() as door:
            door.bind(("127.0.0.1", 0))
            self.port = door.getsockname()[1]
            await self.start_for(account, home, door)
        while not can_connect("127.0.0.1", self.port):
            if await self.poll() is not None:
                raise RuntimeError(ENDED_AT_ONCE.format(log=self.log_of(account)))
            await asyncio.sleep(0.1)
        account_log.write(self.folder, "server started", account.name)
        return "127.0.0.1", self.port

    def log_of(self, account: Account) -> str | Path:
        """The file with what the server has written."""
        return Path(self.folder) / "run" / f"{account.name}.log"

    def get_args(self) -> list[str]:
        """Options of the server."""
        return [
            *super().get_args(),
            f"--MappingKernelManager.cull_idle_timeout={self.idle_s}",
            "--MappingKernelManager.cull_connected=True",
        ]  # a cluster ends with its kernel

    def shared(self) -> list[str]:
        """Folders that the person may write to as their modes say."""
        return [self.exchange] if self.exchange and Path(self.exchange).is_dir() else []

    def shown(self, account: Account) -> dict[str, str]:
        """{folder of the hub's: its name inside} of what only this person's server is shown.

        Instructors are shown the solutions, to read.
        """
        solutions = f"{self.folder}/{SOLUTIONS}"
        return (
            {solutions: sandbox.SOLUTIONS}
            if account.role == INSTRUCTOR and Path(solutions).is_dir()
            else {}
        )

    async def _open_relay(self) -> None:
        if InTurn._relay is None:
            path = sockets(self.folder) / "hub.sock"
            path.unlink(missing_ok=True)
            InTurn._relay = await relay.unix_to_port(path, urlsplit(self.hub.api_url).port)
            path.chmod(0o666)

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """What belongs to the person."""
        home = (
            sandbox.home_of(self.user.name)
            if self.walls
            else str(Accounts(self.folder).home(self.user.name))
        )
        env |= {
            "USER": self.user.name,
            "LOGNAME": self.user.name,
            "HOME": home,
            "SHELL": "/bin/bash",
            "MANYHANDS_ROOT": home,
            "MANYHANDS_COURSE": sandbox.COURSE if self.walls else str(Path(self.folder) / "course"),
        }
        account = Accounts(self.folder).get(self.user.name)
        env["MANYHANDS_NOTICE"] = NOTICE.format(
            end=local_time(account.expires), minutes=self.idle_s // 60
        )
        if self.near:
            env["MANYHANDS_NOTICE"] += OF_THE_BOARD.format(
                address=f"{address(self.folder).rstrip('/')}/services/board/"
            )
            env["MANYHANDS_BOARD"] = (
                f"{sandbox.SOCKETS if self.walls else sockets(self.folder)}/{BOARD}"
            )
        if account.role == INSTRUCTOR:
            env["MANYHANDS_TEACHES"] = address(self.folder)
            for place, inside in self.shown(account).items() if self.near else ():
                env["MANYHANDS_SOLUTIONS"] = inside if self.walls else place
        if self.walls:
            env["MANYHANDS_HUB_SOCKET"] = sandbox.HUB_SOCKET
            env["MANYHANDS_PLACES"] = f"{sandbox.SOCKETS}/{PLACES}"
        if self.shared():
            env["MANYHANDS_EXCHANGE"] = self.exchange
        return env

    async def stop(self, now: bool = False) -> None:
        """Stop the server, and write that to the log."""
        await super().stop(now)
        account_log.write(self.folder, "server stopped", self.user.name)


class SandboxSpawner(InTurn, LocalProcessSpawner):
    """A process in the person's sandbox; without root a plain process of our own user."""

    limiting = Any(help="how the limits are held: a class of manyhands.hub.servers.limits").tag(
        config=True
    )
    group = None  # what holds the limits of the running server

    @property  # of a plain attribute
    def walls(self) -> bool:  # type: ignore[override]
        """Whether servers run in sandboxes, for which the hub must be root."""
        return is_classroom()

    async def start_for(self, account: Account, home: Path, door: socket.socket) -> None:
        """Start the server's process, on the socket `door`."""
        inner = [sys.executable, *SERVER, f"--SandboxServer.fd={door.fileno()}", *self.get_args()]
        self.group = self.limiting(f"manyhands-{os.getpid()}-{account.name}")
        if self.walls:
            inner = sandbox.command(
                account,
                inner,
                folder=self.folder,
                home=home,
                memory_bytes=self.limits.memory_bytes,
                shared=self.shared(),
                shown=self.shown(account),
            )
            inner = self.group.wrap(inner, self.limits)
        self.log.info("Spawning %s", shlex.join(inner))
        handle = os.open(self.log_of(account), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "wb") as log:
            self.proc = Popen(
                inner,
                env=self.get_env(),
                cwd=home,
                pass_fds=[door.fileno()],
                start_new_session=True,
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                preexec_fn=lambda: limits.limit_files(self.limits),
            )
        self.pid = self.proc.pid

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """Add the PATH with this Python's programs."""
        return super().user_env(env) | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        }

    async def _signal(self, number: int) -> bool:
        """Send the signal to the server itself, because bubblewrap would end the sandbox.

        Only the last signal, SIGKILL, ends the sandbox.
        """
        target = self.pid if number == signal.SIGKILL else _innermost(self.pid)
        try:
            os.kill(target, number)
        except ProcessLookupError:
            return False
        return True

    async def stop(self, now: bool = False) -> None:
        """Stop the server, and remove what held its limits."""
        await super().stop(now)
        for _ in range(20):
            if not self.group or self.group.close():
                break
            await asyncio.sleep(0.1)


def _innermost(pid: int) -> int:
    """The server among the sandbox's processes.

    It is below the shells and bubblewraps that made the sandbox.
    """
    try:
        process = psutil.Process(pid)
        for child in process.children(recursive=True):
            if (
                "manyhands.hub.servers.attendee_server" in child.cmdline()
                and child.uids().real != 0
            ):
                return child.pid
    except psutil.Error:
        pass
    return pid
