"""A Python that has imported torch already, for tests that start many programs.

Such tests look at what the programs do, not at how they are started.

`warm` (in conftest.py) is a path that stands where `sys.executable` stands: on a command line of
torchrun or mpiexec, or in `launch(python=warm)`. What is there takes its arguments, environment,
folder, files 0 to 2 and MPI's connection to a process that is kept, and that process forks a child
which runs the program as Python would: as __main__, with its own exit, at which all is taken down.
Exit statuses and signals go both ways. A fork costs some hundredths of a second of processor time;
an import of torch 1.5 s, its first optimizer as much again.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from manyhands.cluster.launch.process_guard import PR_SET_PDEATHSIG, prctl

CLIENT = """\
#!{python} -IS
import json, os, signal, socket, struct, sys
line = socket.socket(socket.AF_UNIX)
line.connect({door!r})
files = [0, 1, 2] + [int(os.environ[name]) for name in ("PMI_FD",) if name in os.environ]
order = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), files]).encode()
for one in (signal.SIGTERM, signal.SIGINT, signal.SIGABRT):
    signal.signal(one, lambda number, frame: line.send(bytes([number])))
socket.send_fds(line, [struct.pack("I", len(order))], files)
line.sendall(order)
status = line.recv(4)
status = struct.unpack("i", status)[0] if status else 1
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""


class Warm:
    """The process that is kept; `python` is the path."""

    def __init__(self, *modules, env=None):
        from manyhands.cluster.launch.command_lines import base_env

        self.folder = Path(tempfile.mkdtemp(prefix="warm-"))
        self.python, door = self.folder / "python", str(self.folder / "door")
        self.python.write_text(CLIENT.format(python=sys.executable, door=door))
        self.python.chmod(0o700)
        start = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from warm import "
            f"serve; del sys.path[0]; serve({door!r}, {str(self.python)!r}, {modules!r})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", start],
            env=base_env(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(30) == 0
        shutil.rmtree(self.folder)


def serve(door, python, modules):
    """Fork a child for each program until our stdin ends.

    Returns in children, too, with SystemExit, up to the end of Python.
    """
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is imported stays as it is in children: no page is copied for a collection
    atexit.register(gc.unfreeze)  # else Triton lists its objects at the end
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(door)
    listener.listen(64)
    heard, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    ours, clients = [listener, heard, waker], {}  # clients: {connection: pid}
    watched = selectors.DefaultSelector()
    for file in (listener, heard, 0):
        watched.register(file, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in watched.select():
            if key.fileobj == 0:
                for pid in clients.values():
                    os.killpg(pid, signal.SIGKILL)
                os._exit(0)
            elif key.fileobj is listener:
                client = listener.accept()[0]
                try:
                    order, files = _order(client)
                except (OSError, ValueError, struct.error):  # it was killed before it had said all
                    client.close()
                    continue
                ready, go = os.pipe()
                if (pid := os.fork()) == 0:
                    os.close(ready)
                    watched.close()
                    for file in (*ours, *clients, client):
                        file.close()
                    _become(python, go, files, *order)
                os.close(go)
                os.read(ready, 1)  # until it has a group of its own
                for file in (ready, *files):
                    os.close(file)
                clients[client] = pid
                watched.register(client, selectors.EVENT_READ)
            elif key.fileobj is heard:
                heard.recv(4096)
                _reap(clients, watched)
            elif key.fileobj in clients:
                with contextlib.suppress(OSError):
                    numbers = _heard(key.fileobj)
                    if numbers:
                        os.kill(clients[key.fileobj], numbers[0])
                    else:
                        watched.unregister(key.fileobj)  # the client was killed
                        os.killpg(clients[key.fileobj], signal.SIGKILL)


def _heard(client):
    try:
        return client.recv(1)
    except ConnectionError:
        return b""


def _order(client):
    """([arguments, folder, environment, the files' numbers], the files)."""
    size, files, _, _ = socket.recv_fds(client, 4, 8)
    size, text = struct.unpack("I", size)[0], b""
    while len(text) < size and (more := client.recv(size - len(text))):
        text += more
    return json.loads(text), files


def _reap(clients, watched):
    """Tell the clients of children that have ended how they did."""
    for client, pid in list(clients.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del clients[client]
            with contextlib.suppress(KeyError):
                watched.unregister(client)
            with contextlib.suppress(OSError):
                client.sendall(struct.pack("i", os.waitstatus_to_exitcode(status)))
            client.close()


def _become(python, go, files, argv, folder, environment, numbers):
    """In the child: be the program."""
    import __main__

    os.setsid()
    os.close(go)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with the process that is kept
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD, 200) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(aside, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    options = [
        argv.pop(0)
        for _ in range(next(i for i, word in enumerate(argv) if word == "-m" or word[0] != "-"))
    ]
    if "-u" in options or "PYTHONUNBUFFERED" in environment:
        sys.stdout.reconfigure(write_through=True)
    sys.path[:0] = [
        place
        for place in environment.get("PYTHONPATH", "").split(os.pathsep)
        if place and place not in sys.path
    ]
    if argv[0] == "-m":
        os.environ["PYTHON_EXEC"] = python  # of torchrun's ranks
        sys.argv[:] = argv[1:]
        sys.path.insert(0, folder)
        sys.modules.pop(argv[1], None)
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = argv
        if "-P" not in options:
            sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
        sys.excepthook = lambda kind, error, trace: sys.__excepthook__(
            kind, error.with_traceback(_of_program(trace, argv[0])), None
        )
        vars(__main__).update(__file__=argv[0])
        exec(compile(Path(argv[0]).read_bytes(), argv[0], "exec"), vars(__main__))
    sys.exit()


def _of_program(trace, path):
    """The traceback from the program's first line on."""
    while trace and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace
