"""The process that imports the framework once and forks engines.

It is started as `python -m manyhands.cluster.engines.fork_server FRAMEWORK...`.

It reads commands, one JSON object a line, from its standard input and writes events to its standard
output:
  {"do": "fork", "rank": 0, "argv": [...], "env": {...}, "log": path, "memory_bytes": null}
      ->  {"event": "forked", "rank": 0, "pid": ...}
  {"do": "signal", "rank": 0, "signal": 9}
and, whenever an engine ends: {"event": "exit", "rank": 0, "pid": ..., "status": wait status,
"memory": true if it grew over its limit}. When its input closes, because the notebook's kernel has
ended, it kills every engine and ends. What engines have started ends with them, in other sessions
too; it stays only if this process itself is killed by SIGKILL. (Where ipyparallel starts the
engines, under MPI, Slurm or ssh, it stays too.)
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.cluster.host.namespaces import enter
from manyhands.cluster.launch.process_guard import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    kill_descendants,
    prctl,
)
from manyhands.kernel_imports import import_ipykernel

if TYPE_CHECKING:
    from typing import Any, NoReturn

POLL_S = 0.05
# torch._dynamo: by the first optimizer, which else takes a second on each rank, and after each
# healing
IMPORTS = {
    "torch": ["torch", "torch.distributed", "torch.nn.parallel", "torch.optim", "torch._dynamo"],
    "tensorflow": ["tensorflow", "tf_keras"],
}


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent ends.

    A parent that has already ended is noticed too.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _send_event(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class ForkServer:
    """The engines of one cluster, by rank: {rank: pid}.

    What an engine leaves in another session becomes a child of this process, and ends with the last
    engine.
    """

    def __init__(self) -> None:
        self.pids: dict[int, int] = {}
        self.limits: dict[int, int | None] = {}
        self.over: set[int] = set()  # process numbers of those that have grown over their limit
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGTERM, lambda *_: self.close())

    def fork(
        self,
        rank: int,
        argv: list[str],
        env: dict[str, str],
        log: str,
        memory_bytes: int | None = None,
    ) -> None:
        """Fork the engine of `rank`, which writes its output to `log`, and send the event."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self.pids[rank], self.limits[rank] = pid, memory_bytes
            _send_event(event="forked", rank=rank, pid=pid)
            return
        try:
            os.setpgid(0, 0)
            die_with_parent(parent)
            _be_an_engine(argv, env, log)
        except BaseException as error:  # noqa: BLE001 - a fork must not return into the fork server
            print("manyhands: the engine ended:", repr(error), file=sys.__stderr__)
        finally:
            os._exit(1)

    def reap(self) -> None:
        """Send an event for each engine that has ended, and kill what it has left behind."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # no engine, and nothing that one has left
                return
            if pid == 0:
                break
            for rank in [r for r, p in self.pids.items() if p == pid]:
                del self.pids[rank]
                _kill_group(pid)  # what the rank itself had started
                _send_event(
                    event="exit", rank=rank, pid=pid, status=status, memory=pid in self.over
                )
        if not self.pids:
            kill_descendants()

    def enforce_memory_limits(self) -> None:
        """Kill an engine that is larger than its limit, as a container's memory limit would."""
        for rank, limit in self.limits.items():
            pid = self.pids.get(rank)
            if limit and pid and pid not in self.over and _resident_bytes(pid) > limit:
                self.over.add(pid)
                _kill_group(pid)

    def signal(self, rank: int, number: int) -> None:
        """Send the signal `number` to a rank, unless it has ended."""
        if rank in self.pids:
            os.kill(self.pids[rank], number)

    def close(self) -> NoReturn:
        """Kill every engine with all that it has started, and end this process."""
        for pid in self.pids.values():
            _kill_group(pid)
        kill_descendants()
        os._exit(0)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            fields = file.read().split()
    except OSError:
        return 0
    # resident, less what is shared with the fork server's files
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def _be_an_engine(argv: list[str], env: dict[str, str], log: str) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.update(env)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    sys.argv = ["ipengine", *argv]
    from ipyparallel.engine.app import main

    main()
    os._exit(0)


def _import(frameworks: list[str]) -> None:
    """Import what the engines will need.

    Nothing here may start a thread or run an operation before the fork.
    """
    # imports make many objects and no garbage: to look for some takes a fifth of their time
    gc.disable()
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "tensorflow" in frameworks and importlib.util.find_spec("triton"):
        # of PyTorch's CUDA build: after TensorFlow its import ends the process
        importlib.import_module("triton")
    for framework in frameworks:
        for name in IMPORTS[framework]:
            try:
                importlib.import_module(name)
            except (ImportError, OSError, MemoryError) as error:
                _send_event(
                    event="failed",
                    why=f"{name} cannot be imported: {error or type(error).__name__}",
                )
                sys.exit(1)
    import_ipykernel()
    import ipyparallel.engine.app  # noqa: F401
    import IPython.extensions.storemagic  # noqa: F401  by each shell
    import numpy  # noqa: F401  by ipyparallel, with the first call
    import tornado.platform.asyncio  # noqa: F401

    import manyhands.cluster.on_rank.agent  # noqa: F401

    gc.collect()
    gc.freeze()
    # else Triton, of PyTorch's CUDA build, lists its objects when a forked program ends
    atexit.register(gc.unfreeze)
    gc.enable()


def main(frameworks: list[str]) -> NoReturn:
    """Import the frameworks, then carry out the commands that arrive until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # in the emulated profile: there, and with it here, its ranks may go into their nodes
    if "MANYHANDS_USER_NAMESPACE" in os.environ:
        enter(os.environ["MANYHANDS_USER_NAMESPACE"])
    # what an import prints must not be taken for an event
    events, sys.stdout = sys.stdout, sys.stderr
    _import(frameworks)
    sys.stdout = events
    _send_event(event="ready")
    fork_server, buffer = ForkServer(), b""
    while True:
        readable, _, _ = select.select([0], [], [], POLL_S)
        if readable:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                fork_server.close()
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                command = json.loads(line)
                if command.pop("do") == "fork":
                    fork_server.fork(**command)
                else:
                    fork_server.signal(command["rank"], command["signal"])
        fork_server.reap()
        fork_server.enforce_memory_limits()


if __name__ == "__main__":
    main(sys.argv[1:])
