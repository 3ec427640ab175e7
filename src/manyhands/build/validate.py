"""nbval for many notebooks, side by side: each in a process, a folder and an environment of its own.

A server process imports pytest, nbval and Jupyter once; the process for each notebook is forked from it, copies the
notebook's folder, runs nbval there with the cures of `nbval_cures`, and ends whatever the notebook left running.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from manyhands.build.environment import kernel_environment
from manyhands.build.execute import CELL_TIMEOUT_S
from manyhands.build.processes import adopt_orphans, children, end

NOTEBOOK_TIMEOUT_S = 600
JOBS = 2
_PRELOADED = ["manyhands.build.validate", "pytest", "nbval.plugin", "jupyter_client.manager", "ipykernel.kernelspec"]
_OPTIONS = (
    "--nbval --nbval-current-env -p manyhands.build.nbval_cures -p no:cacheprovider -p no:xdist -p no:timeout "
    "-q --color=no --disable-warnings"
).split()


@dataclass
class Verdict:
    """What nbval says of one notebook; `strays` are the processes that it left running, ended by now."""

    passed: bool
    text: str
    strays: list
    seconds: float


def validate(notebook, cell_timeout_s=CELL_TIMEOUT_S, timeout_s=NOTEBOOK_TIMEOUT_S):
    """Run nbval on one notebook and wait; a Verdict, whatever happens. May be called from several threads at once."""
    begun = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="mh-"))
    try:
        process = _server().Process(target=_run_one, args=(str(notebook), str(home), cell_timeout_s))
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            end(_family(process.pid))
            process.join()
            return Verdict(False, _text(home) + f"\nstopped after {timeout_s} s", [], time.monotonic() - begun)
        try:
            result = json.loads((home / "verdict").read_text())
        except FileNotFoundError:
            result = {"passed": False, "strays": []}
        text = _text(home) if process.exitcode == 0 else f"{_text(home)}\nthe process of nbval ended with {process.exitcode}"
        return Verdict(result["passed"], text, result["strays"], time.monotonic() - begun)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _server():
    """Where warm processes are forked from; started at its first use."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def _family(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        return [*parent.children(recursive=True), parent]
    return []


def _text(home):
    with contextlib.suppress(FileNotFoundError):
        return (home / "output").read_text(errors="replace").replace(f"{home.resolve()}/", "").strip()
    return ""


def _run_one(notebook, home, cell_timeout_s):
    """In the notebook's own process: run nbval on a copy of its folder and write the verdict to `home`."""
    import pytest

    home, notebook = Path(home), Path(notebook)
    adopt_orphans()
    _end_with_parent()
    os.environ.update(kernel_environment(home))
    tempfile.tempdir = None
    output = os.open(home / "output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    copy = home / notebook.parent.name
    shutil.copytree(notebook.parent, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    (home / "pytest.ini").write_text("[pytest]\n")
    os.chdir(home)
    target = str(copy / notebook.name)
    code = pytest.main([*_OPTIONS, "-c", str(home / "pytest.ini"), f"--nbval-cell-timeout={cell_timeout_s}", target])
    strays = [process.pid for process in end(children())]
    sys.stdout.flush()
    (home / "verdict").write_text(json.dumps({"passed": code == 0, "strays": strays}))


def _end_with_parent():
    """End this process and all below it when the one that asked for it is gone (its server dies with it)."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        end(children())
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
