"""A class's submissions graded by `manyhands grade`, against `nbgrader autograde`.

Both grade the same ones in the same run.

40 of a lab of two small questions, 10 of a lab with a cluster of four ranks: some solved, some in
part. Both are commands, timed from start to end; ours also runs the solution once for its
reference. Before them, and not timed, the gradebooks learn of the labs, by `manyhands release` and
`nbgrader generate_assignment`.
"""

import copy
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nbformat
import psutil

from manyhands.authoring import labs

from . import SMOKE, from_tests
from .pairs import ratio_line

ROOT = Path(__file__).parents[1]
SIMPLE, CLUSTER = "90_tiny", "01_data_parallel"
COUNTS = {SIMPLE: 2} if SMOKE else {SIMPLE: 40, CLUSTER: 10}
TARGETS = {SIMPLE: 0.30, CLUSTER: 0.50}  # of the peer's time
MEMORY_TARGET = 1.3  # of the peer's memory
PLAIN = """
c = get_config()
c.CourseDirectory.course_id = "manyhands"
c.CourseDirectory.source_directory = "solutions"
c.ExecutePreprocessor.timeout = 180
c.Execute.timeout = 180
"""


def course(folder, settings):
    """A course with the two labs and nothing else."""
    from_tests()
    import tiny

    tiny.Lab(folder)
    shutil.copytree(ROOT / "solutions" / CLUSTER, folder / "solutions" / CLUSTER)
    for unit in COUNTS:
        for name, data in labs.release(folder / "solutions" / unit, unit).items():
            path = folder / "labs" / unit / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    (folder / "nbgrader_config.py").write_text(settings)


def hand_in(folder, submitted):
    """Write what is handed in.

    Of each three submissions one is solved, one has its first answer missing, one its last.
    """
    for unit, count in COUNTS.items():
        solved = nbformat.read(folder / "solutions" / unit / f"{unit}.ipynb", 4)
        answers = [
            number
            for number, cell in enumerate(solved.cells)
            if (cell.metadata.get("nbgrader") or {}).get("solution")
        ]
        for number in range(count):
            notebook = copy.deepcopy(solved)
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs, cell.execution_count = [], None
            for place in [[], answers[:1], answers[-1:]][number % 3]:
                notebook.cells[place].source = "raise NotImplementedError()"
            path = submitted / f"student{number:02d}" / unit / f"{unit}.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(notebook, path)


class Memory(threading.Thread):
    """The largest memory of a process and its descendants, shared pages counted once, in MiB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.process, self.most, self.over = psutil.Process(pid), 0, threading.Event()
        self.start()

    def run(self):
        """Look at the command's processes every second, until `over` is set."""
        while not self.over.wait(1):
            total = 0
            try:
                for process in [self.process, *self.process.children(recursive=True)]:
                    total += process.memory_full_info().pss
            except psutil.Error:
                continue
            self.most = max(self.most, total / 2**20)


def timed(folder, *words):
    """(seconds, MiB) of a command that must succeed."""
    environment = {
        **os.environ,
        "MANYHANDS_ROOT": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
        "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
    }
    with open(folder / "log", "w+") as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=folder, env=environment, stdout=log, stderr=log
        )
        memory = Memory(process.pid)
        code = process.wait()
        seconds = time.perf_counter() - start
        memory.over.set()
        if code:
            log.seek(0)
            raise RuntimeError(" ".join(words) + log.read()[-3000:])
    return seconds, memory.most


def main():
    """Grade a class with both, and give the lines of the table."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as peer:
        ours, peer = Path(ours), Path(peer)
        course(ours, (ROOT / "nbgrader_config.py").read_text())
        course(peer, PLAIN)
        hand_in(ours, ours / "classroom" / "submitted")
        hand_in(peer, peer / "submitted")
        for unit, count in COUNTS.items():
            timed(ours, "manyhands", "release", unit)
            timed(peer, "nbgrader", "generate_assignment", unit)
            (our_s, our_mb), (peer_s, peer_mb) = (
                timed(ours, "manyhands", "grade", unit),
                timed(peer, "nbgrader", "autograde", unit),
            )
            name = (
                f"{count} submissions "
                f"{'with a cluster' if unit == CLUSTER else 'without a cluster'} graded (peer: "
                "`nbgrader autograde`)"
            )
            yield ratio_line(name, [our_s], [peer_s], "s", TARGETS[unit])
            yield (
                f"| submissions in a minute | {60 * count / our_s:.1f} | {60 * count / peer_s:.1f} "
                f"| {peer_s / our_s:.2f} times | | |"
            )
            yield ratio_line(
                "memory of all their processes, at most", [our_mb], [peer_mb], "MiB", MEMORY_TARGET
            )
