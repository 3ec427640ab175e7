"""The local profile: a controller of ipyparallel, and engines that a fork server makes here."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.cluster.engines.reach import BUSY, until_answering
from manyhands.cluster.faults.kinds import ClusterNotStarted
from manyhands.cluster.host.machine_requirements import without_errors
from manyhands.cluster.host.name_service import without_warnings
from manyhands.cluster.on_rank.signalled_stack import processor_s

if TYPE_CHECKING:
    from typing import Any

    import ipyparallel as ipp

    from manyhands.cluster.engines.reach import StartLimit
    from manyhands.cluster.payloads import Exit

HEARTBEAT_MS = 100


def end_of(log: str, lines: int = 8) -> str:
    """The last lines of a log as the end of a message.

    The cluster's folder, which contains the log, is removed with the cluster.
    """
    tail = last_lines(log, lines)
    return "\n".join([". The end of its log:", *tail]) if tail else ""


def last_lines(path: str, lines: int) -> list[str]:
    """Those of the last lines of a file that are not empty; none where there is no such file."""
    try:
        with open(path, errors="replace") as file:
            return [line.rstrip() for line in file.readlines()[-lines:] if line.strip()]
    except OSError:
        return []


class LocalEngines:
    """The engine processes of one cluster on this machine, by rank.

    `exits` holds, for every rank whose process has ended unasked, {"status": wait status, "memory":
    over its limit}.
    """

    report_ip = "127.0.0.1"

    def __init__(self, folder: str, frameworks: list[str], memory_mib: int | None = None) -> None:
        self.folder, self.frameworks = folder, frameworks
        self.memory_bytes = memory_mib and memory_mib << 20
        # of the controller, for engines; set before start()
        self.connection_file: str | None = None
        self.pids: dict[int, int] = {}
        self.exits: dict[int, Exit] = {}
        self._generation = 0
        self._start_fork_server()

    def _start_fork_server(self) -> None:
        environment = {
            **os.environ,
            **without_warnings(),
            **without_errors(),
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            **self._fork_server_environment(),
        }
        self._log = open(os.path.join(self.folder, "fork_server.log"), "a")  # noqa: SIM115 - kept open
        self._fork_server = subprocess.Popen(
            [sys.executable, "-m", "manyhands.cluster.engines.fork_server", *self.frameworks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
            env=environment,
        )
        self._ready = False
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(
            target=self._listen,
            args=(self._fork_server, self._events),
            daemon=True,
            name="fork-server-events",
        ).start()

    def _fork_server_environment(self) -> dict[str, str]:
        return {}

    def _listen(
        self, fork_server: subprocess.Popen[str], events: queue.Queue[dict[str, Any]]
    ) -> None:
        assert fork_server.stdout is not None  # a pipe
        for line in fork_server.stdout:
            event = json.loads(line)
            if event["event"] == "exit":
                if self.pids.get(event["rank"]) == event["pid"]:
                    self.exits[event["rank"]] = event
            elif event["event"] == "forked":
                self.pids[event["rank"]] = event["pid"]
            else:
                events.put(event)
        events.put({"event": "failed", "why": "the process that forks the ranks has ended"})
        if fork_server is self._fork_server:
            for rank in self.pids:
                self.exits.setdefault(rank, {"status": signal.SIGKILL, "memory": False})

    def _send_command(self, **command: Any) -> None:
        assert self._fork_server.stdin is not None  # a pipe
        self._fork_server.stdin.write(json.dumps(command) + "\n")
        self._fork_server.stdin.flush()

    @property
    def group(self) -> int | None:
        """The process group of the fork server, for the guard."""
        return self._fork_server.pid

    def environment_of(self, rank: int, environment: dict[str, str]) -> dict[str, str]:
        """What a rank learns of the world; on one machine it is all known beforehand."""
        return environment

    def start(
        self, client: ipp.Client, environments: list[dict[str, str]], limit: StartLimit
    ) -> dict[int, int]:
        """Fork one engine for each rank and wait until the controller knows them all.

        Returns {rank: engine id}.
        """
        self._make_ready(limit)
        self._generation += 1
        self.exits, self.pids = {}, {}
        identity = {
            rank: f"rank-{rank}-{self._generation}-{os.urandom(4).hex()}"
            for rank in range(len(environments))
        }
        for rank, environment in enumerate(environments):
            argv = [
                f"--file={self.connection_file}",
                f"--Session.session={identity[rank]}",
                "--IPEngine.enable_nanny=False",
                "--log-level=40",
                # else it ends where the controller is busy for 5 s
                f"--IPEngine.timeout={limit.seconds}",
                # else a rank ends itself when the controller has been without the processor for
                # 30 s; the fork server ends them
                "--IPEngine.max_heartbeat_misses=0",
            ]
            log = os.path.join(self.folder, f"rank-{rank}.log")
            self._send_command(
                do="fork",
                rank=rank,
                argv=argv,
                env=environment,
                log=log,
                memory_bytes=self.memory_bytes,
            )
        return self._wait_registered(client, identity, limit)

    def _make_ready(self, limit: StartLimit) -> None:
        """A fork server that runs and has imported the frameworks.

        RuntimeError where that cannot be had.
        """
        assert self._fork_server.stdin is not None  # a pipe
        if self._fork_server.poll() is not None or self._fork_server.stdin.closed:
            self._fork_server.stdin.close()
            self._start_fork_server()
        while not self._ready:
            self._ready = self._next_event(self._events, self._log.name, limit)["event"] == "ready"

    def _next_event(
        self, events: queue.Queue[dict[str, Any]], log: str, limit: StartLimit
    ) -> dict[str, Any]:
        try:
            event = events.get(timeout=limit.left_s)
        except queue.Empty:
            event = {
                "event": "failed",
                "why": (
                    f"{' and '.join(self.frameworks) or 'Python'} was not imported within "
                    f"{limit.seconds:g} s{BUSY}"
                ),
            }
        if event["event"] == "failed":
            raise ClusterNotStarted(f"The ranks cannot be started: {event['why']}{end_of(log)}")
        return event

    def _wait_registered(
        self, client: ipp.Client, identity: dict[int, str], limit: StartLimit
    ) -> dict[int, int]:
        wanted = {uuid: rank for rank, uuid in identity.items()}
        while True:
            registered = {
                wanted[uuid]: engine
                for engine in client.ids
                if (uuid := client._engines.get(engine)) in wanted
            }
            if len(registered) == len(wanted):
                until_answering(client, registered.values(), limit)
                return registered
            if self.exits or not limit.left_s:
                missing = sorted(set(identity) - set(registered))
                log = os.path.join(self.folder, f"rank-{missing[0]}.log")
                why = "" if self.exits else BUSY
                raise ClusterNotStarted(f"Ranks {missing} did not start{why}{end_of(log)}")
            time.sleep(0.01)

    def signal(self, rank: int, number: int) -> None:
        """Have the fork server send the signal `number` to a rank."""
        self._send_command(do="signal", rank=rank, signal=int(number))

    def processor_s(self, rank: int) -> float:
        """The processor time of a rank so far, in seconds; OSError if it does not rest."""
        return processor_s(self.pids[rank])

    def _reachable(self) -> bool:
        return self._fork_server.poll() is None

    def kill(self, client: ipp.Client, engine_ids: list[int]) -> None:
        """End every rank immediately, and have the controller forget them."""
        for rank in list(self.pids):
            if rank not in self.exits and self._reachable():
                self.signal(rank, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while len(self.exits) < len(self.pids) and time.monotonic() < deadline:
            time.sleep(0.005)
        if len(self.exits) < len(self.pids):
            raise RuntimeError(
                f"ranks {sorted(set(self.pids) - set(self.exits))} could not be ended"
            )
        for engine in engine_ids:
            client.session.send(
                client._query_socket, "unregistration_request", content={"id": engine}
            )

    def log_tail(self, rank: int, lines: int = 3) -> list[str]:
        """The last lines that C++ libraries wrote to the stderr of a rank."""
        return last_lines(os.path.join(self.folder, f"stderr-{rank}.log"), lines)

    def _end_fork_server(self) -> None:
        assert self._fork_server.stdin is not None  # a pipe
        self._fork_server.stdin.close()
        try:
            self._fork_server.wait(5 if self._ready else 0)  # while it imports it does not read
        except subprocess.TimeoutExpired:
            os.killpg(self._fork_server.pid, signal.SIGKILL)
            # on a busy machine; this must not hide why the start failed
            with suppress(subprocess.TimeoutExpired):
                self._fork_server.wait(5)

    def stop(self) -> None:
        """End the fork server, and with it all ranks."""
        if self._fork_server.poll() is None:
            self._end_fork_server()
        assert self._fork_server.stdout is not None  # a pipe
        self._fork_server.stdout.close()
        self._log.close()
