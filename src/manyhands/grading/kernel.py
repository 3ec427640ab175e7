"""A fresh kernel that runs cells one by one, with limits, and is not trusted: what comes from it is only data."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import psutil
import zmq
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from manyhands.build.environment import kernel_environment
from manyhands.build.processes import adopt_orphans, children, end, release_orphans
from manyhands.grading import container, memory, sandbox

POLL_MS = 200
KEPT_BYTES = 5_000_000  # of one cell's output
MESSAGE_BYTES = 64 * 2**20  # one that is longer costs the connection
CHANNELS = 4  # shell, iopub, stdin and control, in the order of their ports
# Nothing beside the notebook is imported before the kernel runs; IPython puts the folder back into the path, after the library.
START = "import sys; del sys.path[0]; from manyhands.grading.inside import Inside; Inside.launch_instance()"
TASKS_PER_PROCESS = 10  # what a control group limits are threads


@dataclass(frozen=True)
class Limits:
    """What a submission may use."""

    cell_s: float = 180
    total_s: float = 900
    start_s: float = 60
    memory_bytes: int = 4 * 2**30
    processes: int = 400
    output_bytes: int = 200 * 2**20  # while one cell runs
    interrupt_s: float = 15  # for a cell to end once it was interrupted


class KernelEnded(Exception):
    """The kernel is gone; `reason` is "total", "cell", "memory", "processes", "output", "died" or "start"."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@dataclass
class Ran:
    """One cell's run: its outputs (as nbformat has them), its error if it raised one, whether it was interrupted."""

    outputs: list = field(default_factory=list)
    error: str = ""
    interrupted: bool = False


class Kernel:
    """A kernel in the sandbox (`sandboxed=True`) or beside it; a context manager that leaves no process behind. May raise `NotStarted`.

    `submission` is a folder whose copy the kernel starts in. It is spoken to over sockets in a private folder, which it
    cannot write in.
    """

    def __init__(self, submission, seed, sandboxed, limits=Limits()):
        self.submission, self.seed, self.sandboxed, self.limits = Path(submission), seed, sandboxed, limits
        self.reason, self.contained = None, sandboxed and sandbox.contained()

    def __enter__(self):
        if not self.contained:  # an engine's own processes are not ours
            adopt_orphans()
        self.home = tempfile.TemporaryDirectory(prefix="mh-", ignore_cleanup_errors=True)
        self.tasks = TASKS_PER_PROCESS * self.limits.processes
        self.group = memory.NoGroup() if self.contained else memory.memory_group(self.limits.memory_bytes, self.tasks)
        self.until = time.monotonic() + self.limits.total_s
        try:
            self._start()
            self._connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self):
        home = Path(self.home.name)
        private = home / container.PRIVATE
        private.mkdir()
        self.connection = str(private / "connection.json")
        write_connection_file(self.connection, transport="ipc", ip=str(private / "k"))
        listeners = [_listener(private / f"k-{port}") for port in range(1, CHANNELS + 1)]
        fds = [listener.fileno() for listener in listeners]
        environment = kernel_environment(home / "h", self.seed, MANYHANDS_RECORD="1")
        start = self._start_contained if self.contained else self._start_process
        try:
            start(home, fds, environment)
        finally:
            for listener in listeners:
                listener.close()

    def _start_process(self, home, fds, environment):
        inner = self._command(sys.executable, fds)
        folder = self.submission
        if self.sandboxed:
            environment = sandbox.environment(environment)
            inner = sandbox.command(inner, submission=self.submission, private=home / container.PRIVATE, memory_bytes=self.limits.memory_bytes)
            folder = home
        else:
            environment["JPY_PARENT_PID"] = str(os.getpid())
        self.process = subprocess.Popen(
            self.group.wrap(inner), env=environment, cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=fds,
        )
        self.watcher = memory.Watcher(self.process.pid, self.limits.memory_bytes, self.limits.processes)
        self.watcher.start()

    def _start_contained(self, home, fds, environment):
        archive = home / container.PRIVATE / "submission.tar"
        container.pack(self.submission, archive)
        self.watcher = container.Container(container.engine()[0], home, memory_bytes=self.limits.memory_bytes, tasks=self.tasks)
        self.process = self.watcher.process
        order = {"command": self._command(container.PYTHON, []), "environment": container.environment(environment), "submission": str(archive),
                 "folder": container.FOLDER, "file_bytes": sandbox.FILE_BYTES, "processes": self.limits.processes}
        self.watcher.tell(order, fds, time.monotonic() + self.limits.start_s)

    def _command(self, python, fds):
        return [python, "-c", START, "-f", self.connection, "--Inside.fds=" + ",".join(map(str, fds))]

    def _connect(self):
        context = zmq.Context()
        context.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES)
        context.setsockopt(zmq.RCVHWM, 2)  # what is not read yet waits in the kernel
        self.client = BlockingKernelClient(connection_file=self.connection, context=context)
        self.client.load_connection_file()
        self.client.start_channels(stdin=False, hb=False)
        self.broken = self.client.iopub_channel.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        until = time.monotonic() + self.limits.start_s
        while True:  # a first, empty cell, until its end is heard: then nothing later is missed
            wait_until = min(until, time.monotonic() + 1)
            with suppress(TimeoutError):
                self._listen(self.client.execute("", silent=True), wait_until, Ran())
                return
            if time.monotonic() > until:
                raise KernelEnded("start")

    def run(self, source):
        """Run one cell; `KernelEnded` if the kernel does not survive it or the limits are used up."""
        ran = Ran()
        until = time.monotonic() + self.limits.cell_s
        cell = self.client.execute(source, allow_stdin=False, stop_on_error=False)
        try:
            self._listen(cell, until, ran)
        except TimeoutError:
            ran.interrupted = True
            self._interrupt()
            try:
                self._listen(cell, time.monotonic() + self.limits.interrupt_s, ran)
            except TimeoutError:
                raise KernelEnded("cell") from None
        return ran

    def _interrupt(self):
        session, channel = self.client.session, self.client.control_channel
        channel.send(session.msg("interrupt_request", {}))

    def _listen(self, cell, until, ran):
        """Take in what the kernel says about a cell until it is done."""
        kept, received = _Outputs(ran), 0
        while received <= self.limits.output_bytes:
            if time.monotonic() > self.until:
                raise KernelEnded("total")
            if time.monotonic() > until:
                raise TimeoutError
            message = self._next_message()
            if message is None:
                self._check_alive()
                continue
            received += message["size"]
            if _parent(message) == cell and kept.add(message):
                return
        raise KernelEnded("output")

    def _next_message(self):
        """What the kernel has said (`size` in bytes, and what can be read of it), or None if it says nothing for a moment."""
        iopub = self.client.iopub_channel.socket
        if not iopub.poll(POLL_MS):
            return None
        frames = iopub.recv_multipart(copy=False)
        size = sum(len(frame.buffer) for frame in frames)
        message = {}
        with suppress(Exception):  # nothing that a kernel sends may stop the grader
            _, frames = self.client.session.feed_identities(frames, copy=False)
            message = self.client.session.deserialize(frames, content=size <= KEPT_BYTES, copy=False)
        return {**message, "size": size}

    def _check_alive(self):
        while self.client.shell_channel.socket.poll(0):  # replies are not needed
            self.client.shell_channel.socket.recv_multipart()
        cut = self.broken.poll(0)
        if cut:  # by the kernel's end, as a rule
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
        if self.watcher.reason or self.process.poll() is not None:
            raise KernelEnded(self.watcher.reason or ("memory" if self.group.broken() else "died"))
        if cut:
            raise KernelEnded("output")

    def close(self):
        """End the kernel and all that it started."""
        if hasattr(self, "process"):
            if not self.sandboxed:
                self._ask_to_end()
            if not self.contained:
                end({*memory.family(self.process.pid), *self.group.members(), *self._strays()})
                self.process.wait()
            self.watcher.stop()
        if not self.contained:
            release_orphans()
        if hasattr(self, "client"):
            self.client.stop_channels()
            self.client.context.destroy(linger=0)
        self.group.close()
        self.home.cleanup()

    def _ask_to_end(self):
        """A kernel that ends by itself stops its cluster in order; one that has started nothing can be killed."""
        if hasattr(self, "client") and len(memory.family(self.process.pid)) > 1:
            self.client.shutdown()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)

    def _strays(self):
        """Processes that have left the kernel's family: our folder for temporary files is in their environment."""
        for process in children():
            with suppress(psutil.Error):
                if process.environ().get("TMPDIR", "").startswith(self.home.name):
                    yield process


def _listener(path):
    """A socket that listens at this path."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    listener.setblocking(False)
    return listener


def _parent(message):
    """The id of the request that a message answers; a kernel may write anything there."""
    parent = message.get("parent_header")
    return parent.get("msg_id") if isinstance(parent, dict) else None


class _Outputs:
    """Turns messages into a cell's outputs; broken messages and floods are dropped."""

    def __init__(self, ran):
        self.ran, self.by_display_id, self.bytes, self.clear_next = ran, {}, 0, False

    def add(self, message):
        """Take in one message; True when it says that the cell is done."""
        kind, content = message.get("msg_type"), message.get("content")
        if kind == "status" and isinstance(content, dict):
            return content.get("execution_state") == "idle"
        self.bytes += message["size"]
        if self.bytes <= KEPT_BYTES and isinstance(content, dict):
            with suppress(Exception):  # nothing that a kernel sends may stop the grader
                self._output(kind, content, message)
        return False

    def _output(self, kind, content, message):
        if kind == "clear_output":
            self.clear_next = bool(content.get("wait"))
            if not self.clear_next:
                self.ran.outputs.clear()
        elif kind == "update_display_data":
            for output in self.by_display_id.get(content["transient"]["display_id"], []):
                output.update(data=nbformat.from_dict(content["data"]))
        elif kind in ("stream", "display_data", "execute_result", "error"):
            output = nbformat.v4.output_from_msg(message)
            if self.clear_next:
                self.ran.outputs.clear()
                self.clear_next = False
            self.ran.outputs.append(output)
            if kind == "error" and not self.ran.error:
                self.ran.error = f"{content['ename']}: {content['evalue']}"
            display_id = (content.get("transient") or {}).get("display_id")
            if display_id:
                self.by_display_id.setdefault(display_id, []).append(output)
