"""What is attacked: the grader, and what lies and runs beside it.

And what an attack seems to be worth to who believes it.
"""

import hashlib
import os
import re
import socket
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

import tiny
from manyhands.checks.record import PASS
from manyhands.grading import engine
from manyhands.grading.compare import records
from manyhands.isolation import process_limits
from manyhands.isolation.kernel import Kernel

SEED = 4711
WRONG = {"square": "return 2 * x", "total": "return 0"}
SECRET = "the-secret-of-the-grader"


class Outside:
    """Files of the instructor, a process and two listening sockets of theirs, beside a lab.

    This is a context manager.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.gradebook, self.journal = (
            self.folder / "gradebook.db",
            self.folder / "journal" / "0001.json",
        )
        self.other = self.folder / "submitted" / "ada" / "90_tiny.ipynb"
        self.abstract = f"manyhands-{uuid.uuid4().hex}"  # the name of a socket that is no file

    def __enter__(self):
        for path in (self.gradebook, self.journal, self.other):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SECRET)
        self.process = subprocess.Popen(["sleep", "1000"])
        self.server = socket.create_server(("127.0.0.1", 0))
        self.local = socket.socket(socket.AF_UNIX)
        self.local.bind("\0" + self.abstract)
        self.local.listen()
        self.before = self._files()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.server.close()
        self.local.close()

    @property
    def port(self):
        return self.server.getsockname()[1]

    def _files(self):
        """{path: what is known of it} of all that must stay.

        What was handed in may be written by a test.
        """
        return {
            path: (
                path.lstat().st_mode,
                path.lstat().st_mtime_ns,
                hashlib.sha256(path.read_bytes()).hexdigest(),
            )
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "work" not in path.relative_to(self.folder).parts
        }

    def harm(self):
        """What is not as it was."""
        changed = [
            str(path) for path, fact in self.before.items() if self._files().get(path) != fact
        ]
        if (
            self.process.poll() is not None
            or psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED
        ):
            changed.append("the process")
        for listener in (self.server, self.local):
            listener.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    connection, _ = listener.accept()
                    connection.settimeout(1)
                    with connection, suppress(OSError):
                        # else somebody looked for a port that another program had here before
                        if connection.recv(len(SECRET)) == SECRET.encode():
                            changed.append("a connection")
        return changed


@pytest.fixture
def lab(tmp_path):
    """A tiny lab of two questions, two points each."""
    return tiny.Lab(tmp_path)


@pytest.fixture
def outside(lab):
    """What lies and runs outside: found unchanged when the test ends."""
    with Outside(lab.folder) as outside:
        yield outside
        assert outside.harm() == []


@dataclass
class Seen:
    """What was seen of the runs of notebooks.

    These are the last one's outputs of check cells, and all their namespaces of processes.
    """

    shown: dict = field(default_factory=dict)
    spaces: set = field(default_factory=set)


def watch(monkeypatch):
    """Note what the grader sees: a `Seen` that fills while it works."""
    seen, run, close = Seen(), engine.run, Kernel.close

    def noting_run(*arguments):
        seen.shown, notes = run(*arguments)
        return seen.shown, notes

    def noting_close(kernel):
        if kernel.sandboxed and hasattr(kernel, "process"):
            seen.spaces |= {
                _space(process.pid) for process in process_limits.process_tree(kernel.process.pid)
            }
        close(kernel)

    monkeypatch.setattr(engine, "run", noting_run)
    monkeypatch.setattr(Kernel, "close", noting_close)
    return seen


def _space(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def left(seen, patience_s=10):
    """The processes that live on in a sandbox that was closed.

    They end a moment after it, and a number of a sandbox may be given to another one.
    """
    gone, deadline = seen.spaces - {None, _space("self")}, time.monotonic() + patience_s
    while living := [pid for pid in os.listdir("/proc") if pid.isdigit() and _space(pid) in gone]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return living


@dataclass
class Graded:
    """The grades of a submission.

    `grade` is the grader's; `believed` are the points for one who believes what the kernel says of
    itself.
    """

    grade: engine.Grade
    believed: float

    @property
    def points(self):
        return self.grade.points, self.grade.max

    @property
    def notes(self):
        return "\n".join([self.grade.verdict, *self.grade.notes])


def graded(lab, notebook, seen, **options):
    path = notebook if isinstance(notebook, Path) else lab.submit(notebook)
    grade = engine.grade(path, lab.solution, **{"seed": SEED, "sandboxed": True, **options})
    return Graded(grade, sum(max(_claims(outputs)) for outputs in seen.shown.values()))


def _claims(outputs):
    """The points that a check cell's outputs claim: each record's, and those of printed lines."""
    for record in records(outputs):
        criteria = record.get("criteria") if isinstance(record, dict) else None
        yield sum(
            criterion["points"]
            for criterion in criteria or []
            if isinstance(criterion, dict) and criterion.get("status") == PASS
        )
    text = "".join(output["text"] for output in outputs if output.get("output_type") == "stream")
    yield sum(int(points) for points in re.findall(r"^PASS (\d+)/", text, re.MULTILINE))
    yield 0
