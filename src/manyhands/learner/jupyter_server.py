"""JupyterLab as a child process: settings of its own, an end that leaves nothing behind.

We stand above the server as the process that inherits orphans (Linux), so that at the end every
kernel and every cluster that it started can be seen to be gone.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

SETTINGS = Path(__file__).parent / "jupyter"
EXTENSIONS = Path(__file__).parent / "labextensions"  # of our own: see `renewing`
PORT_TRIES = 3
START_LIMIT_S = 600  # on a machine that others keep busy; one that ends instead is seen at once
STOP_LIMIT_S, ORPHANS_LIMIT_S = 20, 10
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def state_folder(root: str | Path) -> Path:
    """Return the folder in which JupyterLab keeps what it writes for this clone.

    That is its settings, signatures, runtime files and the log.
    """
    return Path(root) / "work" / ".manyhands" / "jupyter"


def environment(root: str | Path) -> dict[str, str]:
    """Return the environment of the server and its kernels.

    This Python comes first, and nothing of the user's own Jupyter configuration counts.
    """
    state, binaries = state_folder(root), Path(sys.executable).parent
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JUPYTER_PATH", "JUPYTERLAB_DIR", "PYTHONHOME")
    }
    return env | {
        "PATH": f"{binaries}{os.pathsep}{env.get('PATH', os.defpath)}",
        "JUPYTER_CONFIG_DIR": str(state / "config"),
        "JUPYTER_CONFIG_PATH": str(SETTINGS),
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "IPYTHONDIR": str(state / "ipython"),
    }


def put_settings(root: str | Path) -> None:
    """Copy what JupyterLab and IPython look for in one place only.

    It is the style, and what a new kernel runs first.
    """
    state = state_folder(root)
    for name, target in (
        ("custom.css", state / "config" / "custom" / "custom.css"),
        ("startup.py", state / "ipython" / "profile_default" / "startup" / "00-manyhands.py"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SETTINGS / name, target)


def first_page(root: str | Path, page: str) -> str:
    """Return where on the server JupyterLab opens.

    `page` is in front, next to the tabs that were open before.
    """
    before = any((state_folder(root) / "workspaces").glob("*.jupyterlab-workspace"))
    return f"/lab/tree/{page}" if before else f"/lab/tree/{page}?reset"


def command(root: str | Path, page: str, arguments: Sequence[str], port: int = 0) -> list[str]:
    """The server's command line; the user's `arguments` come last and win.

    It takes `port` again if that is free, so that a tab of the browser that is still open finds it.
    """
    ours = [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url={first_page(root, page)}",
        f"--LabApp.app_settings_dir={SETTINGS}",
        "--LabApp.custom_css=True",
        f"--LabApp.extra_labextensions_path={EXTENSIONS}",
        # a login shell would reset PATH
        (
            "--ServerApp.terminado_settings={'shell_command': "
            f"[{os.environ.get('SHELL') or 'sh'!r}]}}"
        ),
    ]
    # given twice it would be refused
    if not any(argument.startswith(("--port", "--ServerApp.port")) for argument in arguments):
        ours.append(f"--ServerApp.port={port if _is_free(port) else 0}")
    if os.geteuid() == 0:
        ours.append("--ServerApp.allow_root=True")
    if not can_open_browser():
        ours.append("--ServerApp.open_browser=False")
    return [sys.executable, "-m", "jupyterlab", *ours, *arguments]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def can_open_browser() -> bool:
    """False on a machine without a screen: there a text browser would take the terminal over."""
    if sys.platform == "darwin" or os.environ.get("BROWSER") or "WSL_DISTRO_NAME" in os.environ:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


class Server:
    """One JupyterLab. `start()` returns its address, `wait()` ends with it."""

    def __init__(
        self, root: str | Path, page: str, arguments: Sequence[str], port: int = 0
    ) -> None:
        self.state = state_folder(root)
        self.log = self.state / "lab.log"
        self._call = command(root, page, arguments, port), environment(root), root
        self.process: subprocess.Popen[bytes] | None = None
        self.status: int | None = None

    def start(self) -> str | None:
        """Start it; returns the address with its token.

        None where it has ended instead, or is `late`.
        """
        for _ in range(PORT_TRIES):
            self.status = None
            if (address := self._start()) or not self.lost_its_port():
                return address
        return None

    def _start(self) -> str | None:
        if _LIBC:
            _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        call, env, root = self._call
        put_settings(root)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                call,
                env=env,
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until and self._reap(os.WNOHANG):
            if address := self._address():
                return address
            time.sleep(0.05)
        return None

    @property
    def _child(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, "start() comes first"
        return self.process

    def _address(self) -> str | None:
        """Return where the server answers, or None as long as it does not.

        It writes its address before it listens there.
        """
        try:
            info = json.loads(
                (self.state / "runtime" / f"jpserver-{self._child.pid}.json").read_text()
            )
        except (OSError, ValueError):
            return None
        address = info["url"] + ("?" + urlencode({"token": info["token"]}) if info["token"] else "")
        return address if info.get("sock") or info["secure"] or _answers(info) else None

    def late(self) -> bool:
        """True if it runs, but has not answered within START_LIMIT_S."""
        return self.status is None

    def lost_its_port(self) -> bool:
        """True if somebody took the free port between its choice and its use."""
        return bool(self.status) and b"is already in use" in self.log.read_bytes()

    def _reap(self, how: int) -> bool:
        """Collect ended children, orphans too; returns whether the server still runs."""
        with suppress(ChildProcessError):
            while self.status is None:
                pid, status = os.waitpid(-1, how)
                if pid == self._child.pid:
                    self.status = self._child.returncode = os.waitstatus_to_exitcode(status)
                elif pid == 0:
                    break
        return self.status is None

    def wait(self) -> int:
        """Wait until the server has ended, then until all that it had started has.

        Returns its exit status.
        """
        self._reap(0)
        signal.alarm(0)
        _end_orphans()
        return self.status or 0

    def stop(self) -> None:
        """Ask the server to end; where it does not, it is killed."""
        if self.status is None:
            signal.signal(signal.SIGALRM, lambda *_: self._child.kill())
            signal.alarm(STOP_LIMIT_S)
            os.kill(self._child.pid, signal.SIGTERM)


def _answers(info: dict[str, Any]) -> bool:
    """Ask with the token: somebody else's server on that port would refuse it."""
    request = Request(
        info["url"] + "api/status", headers={"Authorization": f"token {info['token']}"}
    )
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=2):
            return True
    except HTTPError as error:
        return not info["token"] and error.code in (401, 403)  # a password of the user's own
    except OSError:
        return False


def end_with_parent() -> None:
    """In the child: should we be killed, the server is told to end."""
    if _LIBC:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end_orphans() -> None:
    """Let clusters whose kernels have ended stop by themselves; kill what has not."""
    import psutil

    until = time.monotonic() + ORPHANS_LIMIT_S
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = psutil.Process().children(recursive=True)
        if not left:
            return
        if time.monotonic() > until:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        time.sleep(0.1)
