"""A fresh kernel that runs cells one by one, with limits.

It is not trusted: what comes from it is only data.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from manyhands.isolation import bubblewrap, choose, container, process_limits
from manyhands.isolation.kernel_environment import kernel_environment
from manyhands.isolation.kernel_limits import FILE_BYTES, TASKS_PER_PROCESS, Limits
from manyhands.isolation.kernel_outputs import CellRun, Outputs
from manyhands.isolation.zmtp import ConnectionCutError, Wire
from manyhands.shared.processes import adopt_orphans, children, end, release_orphans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from manyhands.isolation.container_init import Order

POLL_S = 0.2
CHANNELS = 4  # shell, iopub, stdin and control, in the order of their ports
# Nothing beside the notebook is imported before the kernel runs; IPython puts the folder back into
# the path, after the library.
START = (
    "import sys; del sys.path[0]; from manyhands.isolation.kernel_app import SocketKernelApp; "
    "SocketKernelApp.launch_instance()"
)


class KernelEndedError(Exception):
    """The kernel is gone.

    `reason` is "total", "cell", "memory", "processes", "output", "died" or "start".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Kernel:
    """A kernel in the sandbox (`sandboxed=True`) or beside it.

    This is a context manager that leaves no process behind. It may raise `NotStartedError`.

    `submission` is a folder whose copy the kernel starts in. It is spoken to over sockets in a
    private folder, which it cannot write in.
    """

    group: process_limits.Group | process_limits.NoGroup
    process: subprocess.Popen[bytes]
    watcher: process_limits.Watcher | container.Container

    def __init__(
        self, submission: str | Path, seed: int, sandboxed: bool, limits: Limits = Limits()
    ) -> None:
        self.submission, self.seed, self.sandboxed, self.limits = (
            Path(submission),
            seed,
            sandboxed,
            limits,
        )
        self.contained = sandboxed and choose.contained()
        self.wires: list[Wire] = []

    def __enter__(self) -> Kernel:
        if not self.contained:  # an engine's own processes are not ours
            adopt_orphans()
        self.home = tempfile.TemporaryDirectory(prefix="mh-", ignore_cleanup_errors=True)
        self.tasks = TASKS_PER_PROCESS * self.limits.processes
        self.group = (
            process_limits.NoGroup()
            if self.contained
            else process_limits.memory_group(self.limits.memory_bytes, self.tasks)
        )
        self.until = time.monotonic() + self.limits.total_s
        try:
            self._start()
            self._connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        home = Path(self.home.name)
        private = home / container.PRIVATE
        private.mkdir()
        self.connection = str(private / "connection.json")
        self.session = Session()
        write_connection_file(
            self.connection, transport="ipc", ip=str(private / "k"), key=self.session.key
        )
        listeners = [_listener(private / f"k-{port}") for port in range(1, CHANNELS + 1)]
        fds = [listener.fileno() for listener in listeners]
        environment = kernel_environment(home / "h", self.seed, MANYHANDS_RECORD="1")
        start = self._start_contained if self.contained else self._start_process
        try:
            start(home, fds, environment)
        finally:
            for listener in listeners:
                listener.close()

    def _start_process(self, home: Path, fds: Sequence[int], environment: dict[str, str]) -> None:
        inner = self._command(sys.executable, fds)
        folder = self.submission
        with bubblewrap.refused_calls_file() as calls, process_limits.no_own_limit():
            if self.sandboxed:
                environment = bubblewrap.environment(environment)
                inner = bubblewrap.command(
                    inner,
                    submission=self.submission,
                    private=home / container.PRIVATE,
                    memory_bytes=self.limits.memory_bytes,
                    calls=calls,
                )
                folder = home
            else:
                environment["JPY_PARENT_PID"] = str(os.getpid())
            self.process = subprocess.Popen(
                self.group.wrap(inner),
                env=environment,
                cwd=folder,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[*fds, *calls],
            )
        self.watcher = process_limits.Watcher(
            self.process.pid, self.limits.memory_bytes, self.limits.processes
        )
        self.watcher.start()

    def _start_contained(self, home: Path, fds: Sequence[int], environment: dict[str, str]) -> None:
        archive = home / container.PRIVATE / "submission.tar"
        container.pack(self.submission, archive)
        program, _ = container.engine()
        assert program is not None  # nothing is contained where none can be
        self.watcher = container.Container(
            program, home, memory_bytes=self.limits.memory_bytes, tasks=self.tasks
        )
        self.process = self.watcher.process
        order: Order = {
            "command": self._command(container.PYTHON, []),
            "environment": container.environment(environment),
            "submission": str(archive),
            "folder": container.FOLDER,
            "file_bytes": FILE_BYTES,
            "processes": self.limits.processes,
        }
        self.watcher.send_order(order, fds, time.monotonic() + self.limits.start_s)

    def _command(self, python: str, fds: Iterable[int]) -> list[str]:
        return [
            python,
            "-c",
            START,
            "-f",
            self.connection,
            "--SocketKernelApp.fds=" + ",".join(map(str, fds)),
        ]

    def _connect(self) -> None:
        shell, iopub, _, control = (
            Path(self.home.name) / container.PRIVATE / f"k-{port}"
            for port in range(1, CHANNELS + 1)
        )
        try:
            for path, kind in ((shell, "DEALER"), (iopub, "SUB"), (control, "DEALER")):
                self.wires.append(Wire(path, kind))
        except ConnectionCutError:
            self._check_alive(cut=True)
        # replies are not needed: they stay where they are
        self.shell, self.iopub, self.control = self.wires
        until = time.monotonic() + self.limits.start_s
        while time.monotonic() < until and (
            waiting := [wire for wire in self.wires if not wire.ready]
        ):
            self._receive(waiting[0])
        # a first, empty cell, until its end is heard: then nothing later is missed
        while time.monotonic() < until:
            with suppress(TimeoutError):
                self._run("", min(until, time.monotonic() + 1), CellRun())
                return
        raise KernelEndedError("start")

    def run(self, source: str) -> CellRun:
        """Run one cell.

        Raises `KernelEndedError` if the kernel does not survive it or the limits are used up.
        """
        ran = CellRun()
        try:
            self._run(source, time.monotonic() + self.limits.cell_s, ran)
        except TimeoutError:
            ran.interrupted = True
            until = time.monotonic() + self.limits.interrupt_s
            try:
                self._send(self.control, "interrupt_request", {}, until)
                self._listen(until, ran)
            except TimeoutError:
                raise KernelEndedError("cell") from None
        return ran

    def _run(self, source: str, until: float, ran: CellRun) -> None:
        content = {
            "code": source,
            "silent": not source,
            "store_history": bool(source),
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        self.cell = self._send(self.shell, "execute_request", content, until)
        self._listen(until, ran)

    def _send(self, wire: Wire, kind: str, content: dict[str, Any], until: float) -> str:
        """Send a request; its id."""
        message = self.session.msg(kind, content)
        try:
            wire.send(self.session.serialize(message), until)
        except ConnectionCutError:
            self._check_alive(cut=True)
        return message["msg_id"]

    def _listen(self, until: float, ran: CellRun) -> None:
        """Take in what the kernel says about the cell until it is done."""
        outputs, most = (
            Outputs(self.session, self.cell, ran),
            self.iopub.received + self.limits.output_bytes,
        )
        while self.iopub.received <= most:
            if time.monotonic() > self.until:
                raise KernelEndedError("total")
            if time.monotonic() > until:
                raise TimeoutError
            if outputs.add(self._receive(self.iopub)):
                return
        raise KernelEndedError("output")

    def _receive(self, wire: Wire) -> list[bytes]:
        """The parts of what the kernel says next.

        There are none if it says nothing for a moment, or of what was not kept.
        """
        before = wire.received
        try:
            message = wire.receive(POLL_S)
        except ConnectionCutError:
            self._check_alive(cut=True)
        if message is None and wire.received == before:
            self._check_alive()
        return message or []

    def _check_alive(self, cut: bool = False) -> None:
        if cut:  # by the kernel's end, as a rule
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
        if self.watcher.reason or self.process.poll() is not None:
            raise KernelEndedError(
                self.watcher.reason or ("memory" if self.group.broken() else "died")
            )
        if cut:
            raise KernelEndedError("output")

    def close(self) -> None:
        """End the kernel and all that it started."""
        if hasattr(self, "process"):
            if not self.sandboxed:
                self._ask_to_end()
            if not self.contained:
                end(
                    {
                        *process_limits.process_tree(self.process.pid),
                        *self.group.members(),
                        *self._strays(),
                    }
                )
                self.process.wait()
            self.watcher.stop()
        if not self.contained:
            release_orphans()
        for wire in self.wires:
            wire.close()
        self.group.close()
        self.home.cleanup()

    def _ask_to_end(self) -> None:
        """Let a kernel that has started something end by itself, so that it stops its cluster.

        One that has started nothing can be killed.
        """
        if hasattr(self, "control") and len(process_limits.process_tree(self.process.pid)) > 1:
            with suppress(KernelEndedError, TimeoutError, subprocess.TimeoutExpired):
                self._send(
                    self.control, "shutdown_request", {"restart": False}, time.monotonic() + 1
                )
                self.process.wait(5)

    def _strays(self) -> Iterator[psutil.Process]:
        """Processes that have left the kernel's family.

        Our folder for temporary files is in their environment.
        """
        for process in children():
            with suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(self.home.name):
                    yield process


def _listener(path: Path) -> socket.socket:
    """A socket that listens at this path."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    listener.setblocking(False)
    return listener
