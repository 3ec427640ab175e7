"""Gather what the ranks of a launch print and how they end, until every process of it has ended."""

from __future__ import annotations

import json
import re
import selectors
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import io
    import subprocess
    from collections.abc import Callable
    from os import PathLike
    from typing import Any, TypeAlias

    from manyhands.cluster.launch.command_lines import Job

    Frame: TypeAlias = tuple[str, int, str]  # (file, line, function)

KEPT_BYTES = 1_000_000  # of each rank's output
FAILED_GRACE_S = 10  # after a rank has failed, the others get so long to end by themselves
SERVERS_GRACE_S = 1  # likewise servers, after the last rank that is none
LAUNCHER_GRACE_S = 10  # likewise the launcher, after the last rank
ABORT_GRACE_S = 3  # for unfinished ranks to write down where they stand
END_GRACE_S = 15  # for the guard to kill everything
# exit codes that we give: `timeout` uses 124; a stopped process was killed by signal 9
TIMED_OUT, STOPPED = 124, -9


@dataclass
class RankState:
    """What is known about one rank. `code` is None until it has ended."""

    text: bytearray = field(default_factory=bytearray)
    dropped_bytes: int = 0
    shown: int = 0  # bytes of `text` that on_line has seen
    control: socket.socket | None = None
    code: int | None = None

    @property
    def running(self) -> bool:
        """Whether the rank has reported its start, and not its end."""
        return self.control is not None and self.code is None


class Collector:
    """Hears the ranks on a socket in `folder` and the launchers on the guard's stdout.

    `run()` returns when all has ended.
    """

    def __init__(
        self,
        folder: str,
        job: Job,
        guard: subprocess.Popen[bytes],
        timeout_s: float,
        on_line: Callable[[int, bytes], None],
    ) -> None:
        assert guard.stdin is not None and guard.stdout is not None  # pipes
        self.job, self.guard, self.on_line = job, guard, on_line
        self._stdin, self._stdout = guard.stdin, guard.stdout
        self.states = [RankState() for _ in job.names]
        self.launcher_text = bytearray()
        self.first_failed: int | None = None
        self.timed_out = False
        # ranks that had not ended when the time was over, or the grace after others had failed
        self.unfinished: list[int] = []
        self._time_out = time.monotonic() + timeout_s
        self._phase, self._deadline = "running", self._time_out
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(Path(folder) / "socket"))
        self._listener.listen(2 * len(self.states))
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def run(self) -> None:
        """Gather until every process has ended. Whatever happens, nothing is left running."""
        self._selector.register(self._stdout, selectors.EVENT_READ, self._hear_launchers)
        try:
            while self._phase != "over" and len(self._selector.get_map()) > 1:  # 1: the listener
                wait_s = max(0.0, self._deadline - time.monotonic())
                for key, _ in self._selector.select(wait_s):
                    key.data(key.fileobj)
                if time.monotonic() >= self._deadline or (
                    self._phase == "aborting" and not self._running()
                ):
                    self._next_phase()
        finally:
            self._end()

    def _running(self) -> list[int]:
        return [rank for rank, state in enumerate(self.states) if state.running]

    # -- phases: running -> aborting -> ending -> over ---------------------------------------------

    def _next_phase(self) -> None:
        waited_for = [
            rank
            for rank, state in enumerate(self.states)
            if state.code is None and rank not in self.job.servers
        ]
        if self._phase == "running" and waited_for:
            self._phase, self._deadline = "aborting", time.monotonic() + ABORT_GRACE_S
            self.timed_out, self.unfinished = time.monotonic() >= self._time_out, waited_for
            for rank in self._running():
                if (control := self.states[rank].control) is not None:
                    self._send_abort(control)
        else:
            # "over": something cannot be killed; leave it
            self._phase = "ending" if self._phase != "ending" else "over"
            self._deadline = time.monotonic() + END_GRACE_S
            self._stdin.close()  # the guard kills everything, and our connections end

    @staticmethod
    def _send_abort(control: socket.socket) -> None:
        with suppress(OSError):  # it has just ended
            control.sendall(b"a")

    def _note_end(self, rank: int, code: int | None) -> None:
        """`code` None: its launcher has killed it.

        That, or the launcher's SIGTERM, is not the failure that came first.
        """
        self.states[rank].code = STOPPED if code is None else code
        if self._phase != "running":
            return
        working = [
            r
            for r, state in enumerate(self.states)
            if state.code is None and r not in self.job.servers
        ]
        grace_s = float("inf")
        # how servers end after the others is not looked at
        if code != 0 and (working or rank not in self.job.servers):
            grace_s = FAILED_GRACE_S
            if code not in (None, -signal.SIGTERM) and self.first_failed is None:
                self.first_failed = rank
        if not working:
            grace_s = (
                SERVERS_GRACE_S
                if any(state.code is None for state in self.states)
                else LAUNCHER_GRACE_S
            )
        self._deadline = min(self._deadline, time.monotonic() + grace_s)

    def _end(self) -> None:
        if not self._stdin.closed:
            self._stdin.close()
        self.guard.wait()
        self._stdout.close()
        for key in list(self._selector.get_map().values()):
            listened_to: Any = key.fileobj  # a socket or a pipe
            listened_to.close()
        self._selector.close()

    # -- what comes in -----------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        hello = bytearray()
        while not hello.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                connection.close()
                return
            hello += byte
        hello = json.loads(hello)
        rank = hello["rank"]
        if hello["channel"] == "control":
            self.states[rank].control = connection
            handler = self._hear_control
        else:
            handler = self._hear_output
        self._selector.register(connection, selectors.EVENT_READ, lambda c: handler(c, rank))

    def _hear_launchers(self, pipe: io.BufferedReader) -> None:
        data = pipe.read1(65536)
        if data:
            self.launcher_text += data[: max(0, KEPT_BYTES - len(self.launcher_text))]
        else:
            self._selector.unregister(pipe)

    def _hear_control(self, connection: socket.socket, rank: int) -> None:
        data = self._receive(connection)
        if data:
            self._note_end(rank, json.loads(data)["exit"])
        elif self.states[rank].code is None:
            self._note_end(rank, None)

    def _hear_output(self, connection: socket.socket, rank: int) -> None:
        state, data = self.states[rank], self._receive(connection)
        room = KEPT_BYTES - len(state.text)
        state.text += data[:room]
        state.dropped_bytes += max(0, len(data) - room)
        end = state.text.rfind(b"\n") + 1 if data else len(state.text)
        if end > state.shown:
            self.on_line(rank, bytes(state.text[state.shown : end]))
            state.shown = end

    def _receive(self, connection: socket.socket) -> bytes:
        """What has come; b"" at the end of the connection, which is then no longer listened to."""
        try:
            data = connection.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            connection.close()
        return data


# -- where a rank stood ----------------------------------------------------------------------------

_DUMP = "Fatal Python error: Aborted\n"
_FRAME = re.compile(
    r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE
)


def split_dump(text: str) -> tuple[str, list[Frame]]:
    """Split a rank's output into what it printed and the frames of its aborted thread.

    The innermost frame is first.
    """
    at = text.rfind(_DUMP)
    if at < 0:
        return text, []
    threads = text[at:].split("\n\n")
    current = next((part for part in threads if part.startswith("Current thread")), threads[-1])
    frames = [(m["file"], int(m["line"]), m["function"]) for m in _FRAME.finditer(current)]
    return text[:at], frames


def where_in(script: str | PathLike[str], frames: list[Frame]) -> str:
    """The innermost frame of the learner's script, else of all, as a phrase.

    For example "train.py line 12, in average: dist.all_reduce(x)".
    """
    import linecache

    own = [frame for frame in frames if Path(frame[0]).parent == Path(script).parent] or frames
    if not own:
        return ""
    file, line, function = own[0]
    source = linecache.getline(file, line).strip()
    return f"{Path(file).name} line {line}, in {function}" + (f": {source}" if source else "")
