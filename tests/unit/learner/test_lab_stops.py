"""`manyhands lab` without a browser.

It answers, starts once, and leaves no process, however it ends.
"""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import websocket
from jupyter_client import BlockingKernelClient

from manyhands.learner.jupyter_server import command, end_with_parent

# A kernel that starts a process which does not belong to its group, as a cluster does, and then
# computes for ever.
BUSY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
while True:
    pass
"""


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "pyproject.toml").write_text('name = "manyhands"')
    yield tmp_path
    for process in ours(tmp_path):
        process.kill()


def ours(clone):
    """All processes that were started for this clone."""
    processes = []
    for process in psutil.process_iter():
        try:
            if str(clone) in process.environ().get("IPYTHONDIR", "") or str(
                clone
            ) in process.environ().get("MANYHANDS_ROOT", ""):
                processes.append(process)
        except (psutil.Error, OSError):
            pass
    return [
        process
        for process in processes
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    ]


def as_from_a_terminal():
    """In the new process.

    Who runs the tests under nohup has a closed terminal ignored, and processes inherit that.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    end_with_parent()


def start(clone, *arguments):
    """The process and the address that it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "manyhands", "lab", "--no-browser", *arguments],
        cwd=clone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"MANYHANDS_ROOT": str(clone)},
        preexec_fn=as_from_a_terminal,
    )
    printed = []
    for line in process.stdout:
        printed.append(line)
        if address := re.search(r"https?://\S+", line):
            return process, address[0]
    raise AssertionError("".join(printed))


def ask(address, path, **fields):
    base, token = address.split("?token=")
    request = urllib.request.Request(
        base + path, headers={"Authorization": f"token {token}"}, **fields
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        request, timeout=10
    ) as answer:
        return answer.read().decode()


def start_busy_kernel(clone, address):
    kernel = json.loads(ask(address, "api/kernels", data=b"{}", method="POST"))["id"]
    client = BlockingKernelClient()
    client.load_connection_file(
        str(clone / f"work/.manyhands/jupyter/runtime/kernel-{kernel}.json")
    )
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    client.execute(BUSY)
    wait_until(
        lambda: any("sleep(600)" in command_line(process) for process in ours(clone)),
        "the kernel's child has started",
    )
    client.stop_channels()


def command_line(process):
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def wait_until(true, what, seconds=30):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def test_busy_kernel_and_what_it_started_end_too(clone):
    process, address = start(clone)
    start_busy_kernel(clone, address)
    process.terminate()
    assert process.wait(45) == 0
    assert ours(clone) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_end_it(clone, how):
    process, address = start(clone)
    ask(address, "api/kernels", data=b"{}", method="POST")
    process.send_signal(how)
    assert process.wait(45) == 0
    assert ours(clone) == []


def test_in_a_terminal_ctrl_c_must_come_twice(clone):
    ours_end, its_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "manyhands", "lab", "--no-browser"],
        cwd=clone,
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        env=os.environ | {"MANYHANDS_ROOT": str(clone)},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(its_end)
    with os.fdopen(ours_end, "r+b", buffering=0) as terminal:
        read_until(terminal, b"Press Ctrl-C twice to stop.")
        terminal.write(b"\x03")
        read_until(terminal, b"Press Ctrl-C again")
        assert process.poll() is None
        terminal.write(b"\x03")
        read_until(terminal, b"Stopped.")
        assert process.wait(30) == 0
    assert ours(clone) == []


def read_until(terminal, text):
    seen = b""
    while text not in seen:
        seen += terminal.read(1000)


def test_killed_it_takes_server_and_kernels_along(clone):
    process, address = start(clone)
    ask(address, "api/kernels", data=b"{}", method="POST")
    process.kill()
    wait_until(lambda: not ours(clone), "all has ended")


def test_server_that_ends_by_itself_is_reported(clone):
    process, address = start(clone)
    ask(address, "api/shutdown", data=b"", method="POST")
    assert process.wait(30) == 0
    assert ours(clone) == []


def test_page_is_there_and_nothing_of_the_users_configuration_counts(
    clone, tmp_path_factory, monkeypatch
):
    home = tmp_path_factory.mktemp("home")
    (home / ".jupyter").mkdir()
    (home / ".jupyter/jupyter_server_config.py").write_text(
        "raise SystemExit('the user\\'s own configuration was read')"
    )
    monkeypatch.setenv("HOME", str(home))
    before = sorted(home.rglob("*"))
    process, address = start(clone)
    assert "The units" in ask(address, "api/contents/work/Start_Here.md?content=1")
    news = json.loads(ask(address, "lab/api/settings/@jupyterlab/apputils-extension:notification"))
    assert news["schema"]["properties"]["fetchNews"]["default"] == "false"
    process.terminate()
    assert process.wait(45) == 0
    assert sorted(home.rglob("*")) == before


def test_terminal_knows_the_command(clone, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/sh")
    process, address = start(clone)
    name = json.loads(ask(address, "api/terminals", data=b"", method="POST"))["name"]
    base, token = address.split("?token=")
    terminal = websocket.create_connection(
        f"ws{base.removeprefix('http')}terminals/websocket/{name}",
        timeout=30,
        header={"Authorization": f"token {token}"},
        http_no_proxy=["localhost"],
    )
    terminal.send(json.dumps(["stdin", "command -v manyhands\r"]))
    seen = ""
    # on a line of its own, or behind a prompt that came late
    while not re.search(r"\s/\S*/manyhands", seen):
        seen += str(json.loads(terminal.recv())[-1])
    assert str(Path(sys.executable).parent / "manyhands") in seen
    terminal.close()
    process.terminate()
    process.wait(45)


def test_started_twice_it_names_the_first_address(clone):
    process, address = start(clone)
    second, named = start(clone)
    assert (second.wait(10), named) == (0, address)
    process.terminate()
    process.wait(45)


def test_started_again_it_takes_the_same_port_if_that_is_free(clone):
    ports = []
    for _ in range(2):
        process, address = start(clone)
        ports.append(urlsplit(address).port)
        process.terminate()
        assert process.wait(45) == 0
    with socket.create_server(("127.0.0.1", ports[0])):
        process, address = start(clone)
        ports.append(urlsplit(address).port)
        process.terminate()
        assert process.wait(45) == 0
    assert ports[0] == ports[1] != ports[2]


def test_options_reach_jupyterlab_and_a_wrong_one_is_told(clone):
    process = subprocess.run(
        [sys.executable, "-m", "manyhands", "lab", "--ServerApp.port=none"],
        cwd=clone,
        text=True,
        timeout=60,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"MANYHANDS_ROOT": str(clone)},
    )
    assert process.returncode == 1
    assert "JupyterLab did not start" in process.stderr and "port" in process.stderr


def test_one_that_does_not_answer_in_time_is_told_and_ended(clone):
    late = (
        "import sys; from manyhands.cli import lab; from manyhands.learner import jupyter_server; "
        "jupyter_server.START_LIMIT_S = 0; sys.exit(lab.main(['--no-browser']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", late],
        cwd=clone,
        text=True,
        timeout=120,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"MANYHANDS_ROOT": str(clone)},
    )
    assert (
        done.returncode == 1 and "did not answer within" in done.stderr and "busy" in done.stderr
    ), done
    assert ours(clone) == []


@pytest.mark.parametrize("asked", [["--port=8890"], ["--ServerApp.port=8890"], []])
def test_a_port_is_named_once(tmp_path, asked):
    words = command(tmp_path, "page", asked)
    assert [
        word.rpartition("=")[2]
        for word in words
        if word.startswith(("--port", "--ServerApp.port="))
    ] == ["8890" if asked else "0"]
