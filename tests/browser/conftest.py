"""A real `manyhands lab` in a copy of the course, and a real Chromium before it.

Pictures of what was seen are kept in the test's temporary folder, or in MANYHANDS_SCREENSHOTS where that is set.
"""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("labs", "notebooks", "solutions", "slides", "sources")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


class Course:
    """A running `manyhands lab` in the folder `root`."""

    def __init__(self, root, *arguments):
        self.root = root
        self.process = subprocess.Popen(
            [sys.executable, "-m", "manyhands", "lab", "--no-browser", *arguments], cwd=root, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        self.printed, self._lines = [], queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.append(line)
            self._lines.put(line)
        self._lines.put("")

    def address(self, timeout_s=60):
        """The address that it printed."""
        while line := self._lines.get(timeout=timeout_s):
            if found := re.search(r"https?://\S+", line):
                return found[0]
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
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__"))
    return target


@pytest.fixture
def start_course():
    """`start_course(folder)` starts one; all are stopped at the end."""
    started = []

    def start(root, *arguments):
        started.append(Course(root, *arguments))
        return started[-1]

    yield start
    for course in started:
        course.stop()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser context: Chromium without a window, on an empty profile."""
    path = needs.program("chromium", package="chromium")
    playwright = pytest.importorskip("playwright.sync_api").sync_playwright().start()
    try:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")), executable_path=path, headless=True, args=FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        yield context
        context.close()
    finally:
        playwright.stop()


@pytest.fixture
def page(chromium):
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture
def screenshots(tmp_path):
    """The folder for pictures."""
    folder = Path(os.environ.get("MANYHANDS_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
