"""`manyhands hub` as a process, a small course for it, and a small browser.

The browser knows cookies and forms.
"""

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import requests

from manyhands.hub.accounts.table import Accounts
from manyhands.hub.services import proxy
from manyhands.learner.jupyter_server import end_with_parent

ROOT = Path(__file__).resolve().parents[2] if len(Path(__file__).parents) > 2 else None
TIMEOUT_S = 240
# the reference of unit 00 is made once, not by each hub
CACHE = tempfile.TemporaryDirectory(prefix="mh-cache-")


def small_course(target):
    """A clone with unit 00 only, solution and source too."""
    target.mkdir(parents=True)
    for name in ("pyproject.toml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, target)
    for folder, name in (
        ("notebooks", "00_preflight.ipynb"),
        ("labs", "00_preflight"),
        ("solutions", "00_preflight"),
        ("slides/built", "00_preflight.pdf"),
        ("sources/tutorial", "00_preflight.py"),
        ("sources/labs", "00_preflight.py"),
    ):
        place = target / folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / folder / name).is_dir() else shutil.copy)(
            ROOT / folder / name, place
        )
    proxy.command(ROOT / ".manyhands")  # installed once for all, for there is no network in a room
    for installed in (ROOT / ".manyhands").glob("proxy-*"):
        shutil.copytree(installed, target / ".manyhands" / installed.name, symlinks=True)
    return target


def wait_for(what, message, timeout_s=TIMEOUT_S):
    """Ask until the answer is true; returns it."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        if answer := what():
            return answer
        time.sleep(0.2)
    raise AssertionError(message() if callable(message) else message)


class Hub:
    """A running `manyhands hub`."""

    def __init__(self, root, folder, *arguments):
        self.folder, self.accounts = folder, Accounts(folder)
        self.environment = os.environ | {"MANYHANDS_ROOT": str(root), "XDG_CACHE_HOME": CACHE.name}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "manyhands", "hub", "--home", str(folder), *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            env=self.environment,
            stdout=open(root / "printed", "wb"),  # noqa: SIM115 - of the hub
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self.printed = (root / "printed").read_text

    def wait_until_open(self):
        wait_for(
            lambda: "The hub is open" in self.printed() or self.process.poll() is not None,
            self.told,
        )
        assert self.process.poll() is None, self.told()
        self.address = re.search(r"https?://\S+", self.printed())[0]
        # another origin
        self.servers = (
            "http://127.0.0.1:" + re.search(r"servers at port (\d+)", self.printed())[1] + "/"
        )

    def told(self):
        log = self.folder / "hub.log"
        return self.printed() + (log.read_text()[-5000:] if log.exists() else "")

    def create(self, count, expires="1h", *arguments):
        """New accounts by the command: [(name, password)]."""
        before, papers = set(self.accounts.load()), self.folder / f"papers-{time.monotonic_ns()}"
        self.command("create", count, "--expires", expires, "--out", papers, *arguments)
        rows = [
            line.split(",")
            for line in (papers / "accounts.csv").read_text(encoding="utf-8-sig").splitlines()[1:]
        ]
        assert {row[0] for row in rows} == set(self.accounts.load()) - before
        return [(row[0], row[3]) for row in rows]

    def command(self, *arguments):
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "manyhands",
                "accounts",
                "--home",
                str(self.folder),
                *map(str, arguments),
            ],
            check=True,
            env=self.environment,
            capture_output=True,
            text=True,
        ).stdout

    def processes_of(self, name):
        """Those that run with the person's user number."""
        uid = self.accounts.get(name).uid
        return [
            process
            for process in psutil.process_iter(["uids"])
            if process.info["uids"] and process.info["uids"].real == uid
        ]

    def logged(self, name):
        """The actions on an account, in order."""
        lines = [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]
        return [line["action"] for line in lines if line["account"] == name]

    def stop(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Visitor:
    """Somebody at a browser."""

    def __init__(self, hub, address="203.0.113.1"):
        self.hub, self.session = hub, requests.Session()
        self.session.trust_env = False

    def get(self, path, **options):
        return self.session.get(self.hub.address + path, timeout=120, **options)

    def log_in(self, name, password):
        """The answer to the log-in form."""
        self.get("hub/login")
        return self.session.post(
            self.hub.address + "hub/login",
            data={"username": name, "password": password, "_xsrf": self._xsrf()},
            timeout=120,
            allow_redirects=False,
        )

    def _xsrf(self):
        return next(
            cookie.value
            for cookie in self.session.cookies
            if cookie.name == "_xsrf" and cookie.path == "/hub/"
        )

    def start_server(self, name):
        """Ask for the own server, and wait until it answers."""
        self.get("hub/spawn")
        wait_for(
            lambda: self.get(f"user/{name}/api").text.startswith('{"version"'),
            lambda: self.hub.told() + log_of(self.hub, name),
        )
        assert self.enter(name) == 200

    def enter(self, name):
        """Open somebody's server: the status of what its files are asked for.

        A page, unlike the interface, asks the hub who this is.
        """
        page = self.get(f"user/{name}/lab")
        # somebody else's server: JupyterHub asks whether that is meant
        if "/oauth2/authorize" in page.url:
            fields = dict(
                re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page.text, re.DOTALL)
            )
            self.session.post(
                page.url,
                data={name: html.unescape(value) for name, value in fields.items()},
                timeout=120,
                headers={"Referer": page.url},
            )
        return self.get(f"user/{name}/api/contents").status_code


def log_of(hub, name):
    path = hub.folder / "run" / f"{name}.log"
    return path.read_text()[-3000:] if path.exists() else "(no log)"
