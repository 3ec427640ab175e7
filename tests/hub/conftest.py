"""A hub as a class has it: as root, with a folder that sandboxes can be made from.

There are also sandboxes for trying out what gets through.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import needs

# whose fixtures we use
sys.path += [str(Path(__file__).parents[1] / name) for name in ("browser",)]

from hub.running_hub import Hub, small_course, wait_for
from manyhands.hub.accounts import archive
from manyhands.hub.accounts.table import Accounts
from manyhands.hub.folder import prepare
from manyhands.hub.servers import limits, sandbox


@pytest.fixture(scope="session")
def classroom():
    """Skip where no sandboxes can be made."""
    if os.geteuid() != 0:
        needs.lacking("the right to make rooms", "run these tests as root")
    needs.program("bwrap", package="bubblewrap")
    if why := sandbox.why_none():
        needs.lacking("a room", why)


@pytest.fixture(scope="module")
def folder():
    """A folder that others may pass through, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="mh-hub-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def hub(classroom, folder):
    """A running hub over a small course; stopped at the end."""
    running = Hub(small_course(folder / "clone"), folder / "hub")
    running.wait_until_open()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def neighbours(classroom, folder):
    """Two attendees with sandboxes, without a hub.

    `neighbours.run("ann", program)` runs Python in ann's sandbox.
    """
    sandboxes = Sandboxes(folder / "rooms")
    yield sandboxes
    sandboxes.close()


class Sandboxes:
    """Accounts ann and ben, and what the hub would give to their sandboxes."""

    def __init__(self, folder):
        prepare(folder)
        self.accounts, self.started, self.groups = Accounts(folder), [], []
        self.accounts.create([{"name": "ann"}, {"name": "ben"}], time.time() + 3600)
        for name in ("ann", "ben"):
            archive.make_home(self.accounts.get(name), self.accounts.home(name))

    def start(
        self,
        name,
        program,
        *arguments,
        limit=None,
        environment=None,
        way=None,
        shared=(),
        shown=(),
        **streams,
    ):
        """A Python program in the sandbox: the Popen."""
        account = self.accounts.get(name)
        inner = [sys.executable, "-c", program, *map(str, arguments)]
        command = sandbox.command(
            account,
            inner,
            folder=self.accounts.folder,
            home=self.accounts.home(name),
            memory_bytes=2**30,
            shared=shared,
            shown=shown,
        )
        group = (way or limits.way())(f"manyhands-test-{os.getpid()}-{name}-{len(self.groups)}")
        self.groups.append(group)
        streams = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        } | streams
        limit = limit or limits.Limits()
        self.started.append(
            subprocess.Popen(
                group.wrap(command, limit),
                text=True,
                start_new_session=True,
                preexec_fn=lambda: limits.limit_files(limit),
                env=os.environ | (environment or {}),
                **streams,
            )
        )
        return self.started[-1]

    def run(self, name, program, *arguments, **options):
        """What it printed."""
        return self.start(name, program, *arguments, **options).communicate(timeout=240)[0].strip()

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for group in self.groups:
            wait_for(group.close, "a control group is left", timeout_s=10)
