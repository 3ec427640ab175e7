"""`manyhands lab` as a process, in a copy of what a learner's clone holds."""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from manyhands.learner.jupyter_server import end_with_parent

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("labs", "notebooks", "solutions", "slides/built", "sources")


class Course:
    """A running `manyhands lab` in the folder `root`."""

    def __init__(self, root, *arguments):
        self.root = root
        self.process = subprocess.Popen(
            [sys.executable, "-m", "manyhands", "lab", "--no-browser", *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"MANYHANDS_ROOT": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self.printed, self._lines, self._address = [], queue.Queue(), None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.append(line)
            self._lines.put(line)
        self._lines.put("")

    def address(self, timeout_s=60):
        """The address that it printed."""
        while not self._address and (line := self._lines.get(timeout=timeout_s)):
            if match := re.search(r"https?://\S+", line):
                self._address = match[0]
        if self._address:
            return self._address
        raise AssertionError("it ended without an address:\n" + "".join(self.printed))

    def stop(self, how=signal.SIGTERM, timeout_s=45):
        """Send the signal; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def copy_course(target):
    """A copy of what the learner's clone holds, without anybody's work."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", target)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                target / name,
                ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__"),
            )
    return target


def left_over(root):
    """Command lines of the processes of the course in `root` that still run."""
    commands = []
    for process in psutil.process_iter():
        try:
            if (
                str(root) in process.environ().get("IPYTHONDIR", "")
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                commands.append(" ".join(process.cmdline()))
        except psutil.Error:
            pass
    return commands
