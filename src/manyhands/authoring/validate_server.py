"""The process that `validate` starts, which forks one process for each notebook.

It runs some at a time, and tells their verdicts. In each, nbval runs on a copy of the notebook's
folder, in the environment that notebooks are built in, with the cures of `nbval_cures`; then
whatever the notebook left running is ended.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbval.plugin  # noqa: F401 (imported here once, with all of Jupyter, for all notebooks)
import psutil
import pytest

from manyhands.isolation.kernel_environment import kernel_environment
from manyhands.shared.processes import adopt_orphans, children, end

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPTIONS = (
    "--nbval --nbval-current-env -p manyhands.authoring.nbval_cures -p no:cacheprovider -p no:xdist -p "
    "no:timeout -q --color=no --disable-warnings"
).split()


class Run:
    """One notebook under nbval, in a forked process."""

    def __init__(
        self,
        notebook: str | Path,
        cell_timeout_s: float,
        timeout_s: float,
        environment: Mapping[str, str],
    ) -> None:
        self.notebook, self.timeout_s = Path(notebook), timeout_s
        self.begun = time.monotonic()
        self.home = Path(tempfile.mkdtemp(prefix="mh-"))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                run_nbval(self.notebook, self.home, cell_timeout_s, environment)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - a fork must not return into the server
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
                os._exit(1)

    def verdict(self) -> dict[str, Any] | None:
        """None while it runs; then what came of it, and all that it made is gone."""
        late = time.monotonic() - self.begun > self.timeout_s
        if late:
            self.stop()
            why = f"stopped after {self.timeout_s} s"
        else:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                return None
            code = os.waitstatus_to_exitcode(status)
            why = f"the process of nbval ended with {code}" if code else ""
        result: dict[str, Any] = {"passed": False, "strays": []}
        if not why:
            result = json.loads((self.home / "verdict").read_text(encoding="utf-8"))
        text = f"{self._text()}\n{why}".strip()
        shutil.rmtree(self.home, ignore_errors=True)
        return {
            **result,
            "notebook": str(self.notebook),
            "text": text,
            "seconds": time.monotonic() - self.begun,
        }

    def stop(self) -> None:
        """End the notebook's process and all that it has started."""
        try:
            process = psutil.Process(self.pid)
            end([*process.children(recursive=True), process])
        except psutil.NoSuchProcess:
            pass

    def _text(self) -> str:
        output = self.home / "output"
        return (
            output.read_text(encoding="utf-8", errors="replace").replace(f"{self.home}/", "")
            if output.exists()
            else ""
        )


def run_nbval(
    notebook: Path, home: Path, cell_timeout_s: float, environment: Mapping[str, str]
) -> None:
    """In the notebook's own process: run nbval on a copy of its folder.

    The verdict is written to `home`.
    """
    adopt_orphans()
    name = f"{notebook.parent.name}-{notebook.stem}"
    variables = kernel_environment(
        home, 0, **{key: text.format(name=name) for key, text in environment.items()}
    )
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    output = os.open(home / "output", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(output, stream)
    copy = home / notebook.parent.name
    shutil.copytree(notebook.parent, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    (home / "pytest.ini").write_text("[pytest]\n")
    os.chdir(home)
    options = ["-c", str(home / "pytest.ini"), f"--nbval-cell-timeout={cell_timeout_s}"]
    code = pytest.main([*_OPTIONS, *options, str(copy / notebook.name)])
    strays = [process.pid for process in end(children())]
    sys.stdout.flush()
    (home / "verdict").write_text(json.dumps({"passed": code == 0, "strays": strays}))


def main() -> None:
    """Read one order from stdin, and write one line for each verdict.

    Stop at once when stdin is closed.
    """
    order = json.loads(sys.stdin.readline())
    waiting = list(order["notebooks"])
    running: list[Run] = []
    adopt_orphans()
    try:
        while waiting or running:
            while waiting and len(running) < order["jobs"]:
                running.append(
                    Run(
                        waiting.pop(0),
                        order["cell_timeout_s"],
                        order["timeout_s"],
                        order["environment"],
                    )
                )
            for run in list(running):
                verdict = run.verdict()
                if verdict:
                    running.remove(run)
                    print(json.dumps(verdict), flush=True)
            if select.select([sys.stdin], [], [], 0.05)[0]:
                break
    except KeyboardInterrupt:  # whoever asked was interrupted too, and says so
        pass
    finally:
        for run in running:
            run.stop()
            shutil.rmtree(run.home, ignore_errors=True)
        end(children())


if __name__ == "__main__":
    main()
