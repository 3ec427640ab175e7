"""Gather what the ranks of a launch print and how they end, until every process of it has ended."""

import json
import re
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

KEPT_BYTES = 1_000_000  # of each rank's output
FAILED_GRACE_S = 10  # after a rank has failed, the others get so long to end by themselves
SERVERS_GRACE_S = 1  # likewise servers, after the last rank that is none
LAUNCHER_GRACE_S = 10  # likewise the launcher, after the last rank
ABORT_GRACE_S = 3  # for unfinished ranks to write down where they stand
END_GRACE_S = 15  # for the guard to kill everything
TIMED_OUT, STOPPED = 124, -9  # exit codes that we give: `timeout` uses 124; a stopped process was killed by signal 9


@dataclass
class RankState:
    """What is known about one rank. `code` is None until it has ended."""

    text: bytearray = field(default_factory=bytearray)
    dropped_bytes: int = 0
    shown: int = 0  # bytes of `text` that on_line has seen
    control: socket.socket | None = None
    code: int | None = None

    @property
    def running(self):
        return self.control is not None and self.code is None


class Collector:
    """Hears the ranks on a socket in `folder` and the launchers on the guard's stdout.
    `run()` returns when all has ended."""

    def __init__(self, folder, job, guard, timeout_s, on_line):
        self.job, self.guard, self.on_line = job, guard, on_line
        self.states = [RankState() for _ in job.names]
        self.launcher_text = bytearray()
        self.first_failed = None
        self.timed_out = False
        self.unfinished = []  # ranks that had not ended when the time, or the others' patience, was over
        self._time_out = time.monotonic() + timeout_s
        self._phase, self._deadline = "running", self._time_out
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(Path(folder) / "socket"))
        self._listener.listen(2 * len(self.states))
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def run(self):
        """Gather until every process has ended. Whatever happens, nothing is left running."""
        self._selector.register(self.guard.stdout, selectors.EVENT_READ, self._hear_launchers)
        try:
            while self._phase != "over" and len(self._selector.get_map()) > 1:  # 1: the listener
                wait_s = max(0.0, self._deadline - time.monotonic())
                for key, _ in self._selector.select(wait_s):
                    key.data(key.fileobj)
                if time.monotonic() >= self._deadline or (self._phase == "aborting" and not self._running()):
                    self._next_phase()
        finally:
            self._end()

    def _running(self):
        return [rank for rank, state in enumerate(self.states) if state.running]

    # -- phases: running -> aborting -> ending -> over -----------------------------------------------------------------

    def _next_phase(self):
        waited_for = [rank for rank, state in enumerate(self.states) if state.code is None
                      and rank not in self.job.servers]
        if self._phase == "running" and waited_for:
            self._phase, self._deadline = "aborting", time.monotonic() + ABORT_GRACE_S
            self.timed_out, self.unfinished = time.monotonic() >= self._time_out, waited_for
            for rank in self._running():
                self._send_abort(self.states[rank].control)
        else:
            # "over": something cannot be killed; leave it
            self._phase = "ending" if self._phase != "ending" else "over"
            self._deadline = time.monotonic() + END_GRACE_S
            self.guard.stdin.close()  # the guard kills everything, and our connections end

    @staticmethod
    def _send_abort(control):
        try:
            control.sendall(b"a")
        except OSError:
            pass  # it has just ended

    def _note_end(self, rank, code):
        """`code` None: its launcher has killed it. That, or the launcher's SIGTERM,
        is not the failure that came first."""
        self.states[rank].code = STOPPED if code is None else code
        if self._phase != "running":
            return
        working = [r for r, state in enumerate(self.states) if state.code is None and r not in self.job.servers]
        grace_s = float("inf")
        if code != 0 and (working or rank not in self.job.servers):  # how servers end after the others is not looked at
            grace_s = FAILED_GRACE_S
            if code not in (None, -signal.SIGTERM) and self.first_failed is None:
                self.first_failed = rank
        if not working:
            grace_s = SERVERS_GRACE_S if any(state.code is None for state in self.states) else LAUNCHER_GRACE_S
        self._deadline = min(self._deadline, time.monotonic() + grace_s)

    def _end(self):
        if not self.guard.stdin.closed:
            self.guard.stdin.close()
        self.guard.wait()
        self.guard.stdout.close()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    # -- what comes in -------------------------------------------------------------------------------------------------

    def _accept(self, listener):
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

    def _hear_launchers(self, pipe):
        data = pipe.read1(65536)
        if data:
            self.launcher_text += data[: max(0, KEPT_BYTES - len(self.launcher_text))]
        else:
            self._selector.unregister(pipe)

    def _hear_control(self, connection, rank):
        data = self._receive(connection)
        if data:
            self._note_end(rank, json.loads(data)["exit"])
        elif self.states[rank].code is None:
            self._note_end(rank, None)

    def _hear_output(self, connection, rank):
        state, data = self.states[rank], self._receive(connection)
        room = KEPT_BYTES - len(state.text)
        state.text += data[:room]
        state.dropped_bytes += max(0, len(data) - room)
        end = state.text.rfind(b"\n") + 1 if data else len(state.text)
        if end > state.shown:
            self.on_line(rank, bytes(state.text[state.shown : end]))
            state.shown = end

    def _receive(self, connection):
        """What has come; b"" at the end of the connection, which is then no longer listened to."""
        try:
            data = connection.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            connection.close()
        return data


# -- where a rank stood ------------------------------------------------------------------------------------------------

_DUMP = "Fatal Python error: Aborted\n"
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)


def split_dump(text):
    """(what the rank printed, the frames of the aborted thread with the innermost first) out of a rank's output."""
    at = text.rfind(_DUMP)
    if at < 0:
        return text, []
    threads = text[at:].split("\n\n")
    current = next((part for part in threads if part.startswith("Current thread")), threads[-1])
    frames = [(m["file"], int(m["line"]), m["function"]) for m in _FRAME.finditer(current)]
    return text[:at], frames


def where_in(script, frames):
    """ "train.py line 12, in average: dist.all_reduce(x)": the innermost frame of the learner's script, else of all."""
    import linecache

    own = [frame for frame in frames if Path(frame[0]).parent == Path(script).parent] or frames
    if not own:
        return ""
    file, line, function = own[0]
    source = linecache.getline(file, line).strip()
    return f"{Path(file).name} line {line}, in {function}" + (f": {source}" if source else "")
