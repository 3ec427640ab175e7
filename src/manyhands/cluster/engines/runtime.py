"""The processes behind one Cluster: controller, engines, guard, and the client that uses them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.cluster.engines.containers import ContainerEngines
from manyhands.cluster.engines.emulated import EmulatedEngines
from manyhands.cluster.engines.engine_calls import send
from manyhands.cluster.engines.reach import (
    BUSY,
    StartLimit,
    answers,
    controller_runs,
    is_running,
)
from manyhands.cluster.faults.kinds import ClusterNotStarted
from manyhands.cluster.faults.watch import Reports
from manyhands.cluster.host import gpu_assignment
from manyhands.cluster.host.machine_requirements import make_folder
from manyhands.cluster.host.ports import reserve
from manyhands.cluster.on_rank import agent, tf_config
from manyhands.cluster.on_rank.recorder import read
from manyhands.cluster.on_rank.signalled_stack import SIGNAL, SignalledStack
from manyhands.cluster.on_rank.stack import struck

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Unpack

    import ipyparallel as ipp
    import psutil

    from manyhands.cluster.engines.engine_calls import Answer
    from manyhands.cluster.engines.local import LocalEngines
    from manyhands.cluster.engines.remote_engines import RemoteEngines
    from manyhands.cluster.engines.shape import Shape
    from manyhands.cluster.faults.kinds import Outcome
    from manyhands.cluster.faults.watch import Watch
    from manyhands.cluster.host.ports import Reservation
    from manyhands.cluster.payloads import Duty, Exit, RankFacts, Stand, TaskConfig

STOP_S = 0.7  # how long a rank may take to answer an interrupt before it is killed


class Runtime:
    """Everything that is started for a Cluster, and ended with it.

    Built anew when the controller has died, or when `renew` was stopped half-way.

    Any of its steps may be stopped: what has begun is then ended by `stop()`, which may itself be
    called again.
    """

    def __init__(self, cluster: Shape, frameworks: list[str]) -> None:
        import ipyparallel as ipp

        self.cluster, self.frameworks, self._ipp = cluster, frameworks, ipp
        self._whole = self._starts_controller = False
        self._controller_children: list[psutil.Process] = []
        self.backend, self._devices = gpu_assignment.assign_devices(
            cluster.nodes, cluster.ranks_per_node
        )
        if cluster.link:
            # NCCL would find the GPUs of one machine, and leave the link aside
            self.backend = "gloo"
        self._port: Reservation | None = None
        self.folder = make_folder(cluster.world_size)
        self._duties: list[Duty] = [{"folder": self.folder}]
        self._start_guard()
        # made by start(): before that, only stop() may be called
        self.reports: Reports = None  # type: ignore[assignment]  # see above
        self._engines: LocalEngines | RemoteEngines = None  # type: ignore[assignment]  # see above
        self._client: ipp.Client = None
        self._ipp_cluster: ipp.Cluster = None

    def start(self, limit: StartLimit | None = None) -> None:
        """Raises ClusterNotStarted where the `StartLimit` is reached."""
        limit = limit or StartLimit()
        if self.cluster.profile in ("local", "emulated", "containers"):
            from manyhands.cluster.engines.local import HEARTBEAT_MS, LocalEngines

            if self.cluster.profile == "containers":
                self._engines = ContainerEngines(self.cluster, self.folder, self.frameworks)
            elif self.cluster.link:
                self._engines = EmulatedEngines(self.cluster, self.folder, self.frameworks)
                self._end_later(group=self._engines.network.group)
            else:
                self._engines = LocalEngines(self.folder, self.frameworks, self.cluster.memory_mib)
            if self._engines.group:
                self._end_later(group=self._engines.group)
            self._ipp_cluster = self._ipp.Cluster(
                n=0,
                profile_dir=os.path.join(self.folder, "profile"),
                log_level=logging.ERROR,
                shutdown_atexit=False,
                controller_args=[
                    f"--HeartMonitor.period={HEARTBEAT_MS}",
                    "--HeartMonitor.max_heartmonitor_misses=600",
                    "--log-level=40",
                ],
            )
            if self._engines.report_ip != "127.0.0.1":
                self._ipp_cluster.controller_ip, self._ipp_cluster.controller_location = (
                    "*",
                    self._engines.report_ip,
                )
        else:
            from manyhands.cluster.engines.remote_engines import RemoteEngines

            self._engines = RemoteEngines(self.cluster, self.folder)
            self._ipp_cluster = self._engines.ipp_cluster
            self._end_later(folder=self._ipp_cluster.profile_dir)
        tied = [
            sys.executable,
            "-m",
            "manyhands.cluster.engines.tied_controller",
            str(os.getpid()),
            self.folder,
        ]
        self._ipp_cluster.config.LocalControllerLauncher.controller_cmd = tied
        self._ipp_cluster.config.LocalControllerLauncher.connection_info_timeout = limit.left_s
        self._starts_controller = True
        self._ipp_cluster.start_controller_sync()
        self._starts_controller = False
        self._end_later(cluster_file=self._ipp_cluster.cluster_file)
        if getattr(self._ipp_cluster.controller, "pid", 0) > 0:
            self._end_later(group=self._ipp_cluster.controller.pid)
        try:
            self._client = self._ipp_cluster.connect_client_sync(timeout=limit.left_s)
        except TimeoutError:
            why = f"The cluster's controller did not start within {limit.seconds:g} s{BUSY}."
            raise ClusterNotStarted(why) from None
        self._engines.connection_file = self._ipp_cluster.controller.connection_files["engine"]
        self.reports = Reports(self._engines.report_ip)
        self._start_ranks(limit)
        process = getattr(self._ipp_cluster.controller, "process", None)
        self._controller_children = process.children() if process else []
        self._whole = True

    def _start_guard(self) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "manyhands.cluster.engines.guard"],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        self._tell_guard(self._duties)

    def _tell_guard(self, duties: list[Duty]) -> None:
        with suppress(BrokenPipeError):  # it has just been killed: the next look makes a new one
            assert self._guard.stdin is not None  # a pipe
            self._guard.stdin.write("".join(json.dumps(duty) + "\n" for duty in duties))
            self._guard.stdin.flush()

    def _end_later(self, **duty: Unpack[Duty]) -> None:
        self._duties.append(duty)
        self._tell_guard([duty])

    def keep_guard(self) -> None:
        """Before each use: replace a guard that was killed.

        Without one a kernel that is killed leaves processes and files.
        """
        if self._guard.poll() is not None:
            assert self._guard.stdin is not None  # a pipe
            with suppress(BrokenPipeError):
                self._guard.stdin.close()
            self._start_guard()

    # ---------------------------------------------------------------- ranks

    def _start_ranks(self, limit: StartLimit) -> None:
        environments = self._environments()
        self._ids = self._engines.start(self._client, environments, limit)
        self._stacks: dict[int, SignalledStack] = {}
        joined: dict[int, Answer] = {}
        loopback = self._loopback()
        final_environments = [
            self._engines.environment_of(rank, {**environments[rank], **loopback})
            for rank in range(self.cluster.world_size)
        ]
        # real nodes have chosen by their own GPUs, and all ranks need one backend
        self.backend = (
            "nccl"
            if all(environment["MANYHANDS_BACKEND"] == "nccl" for environment in final_environments)
            else "gloo"
        )
        self._devices = [
            {
                name: environment[name]
                for name in gpu_assignment.DEVICE_VARIABLES
                if name in environment
            }
            for environment in final_environments
        ]
        for rank, environment in enumerate(final_environments):
            environment["MANYHANDS_BACKEND"] = self.backend
            joined |= self.submit(
                [rank],
                agent.join,
                (rank, self.reports.url, self.reports.token, self.folder, environment, sys.path),
            )
        self.facts: dict[int, RankFacts] = answers(joined, limit)

    def _loopback(self) -> dict[str, str]:
        """The variables that let ranks on one machine talk over its loopback device.

        It exists without a network too.
        """
        if self._engines.report_ip == "127.0.0.1" and os.path.exists("/sys/class/net/lo"):
            return {"GLOO_SOCKET_IFNAME": "lo"}
        return {}

    def _environments(self) -> list[dict[str, str]]:
        """The environment of each rank, as a launcher would set it."""
        cluster = self.cluster
        if self._port is not None:
            self._port.close()
        self._port = reserve(1)
        environments = []
        for rank in range(cluster.world_size):
            node, local_rank = divmod(rank, cluster.ranks_per_node)
            environments.append(
                {
                    "RANK": str(rank),
                    "WORLD_SIZE": str(cluster.world_size),
                    "LOCAL_RANK": str(local_rank),
                    "LOCAL_WORLD_SIZE": str(cluster.ranks_per_node),
                    "GROUP_RANK": str(node),
                    "GROUP_WORLD_SIZE": str(cluster.nodes),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(self._port.ports[0]),
                    "OMP_NUM_THREADS": str(cluster.threads_per_rank),
                    "MANYHANDS_BACKEND": self.backend,
                    "MANYHANDS_NODE_DIR": os.path.join(self.folder, f"node-{node}"),
                    **self._devices[rank],
                }
            )
        return environments

    def layout(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """[(node's name, [(rank, device), ...]), ...] for the picture of the cluster."""
        cluster = self.cluster
        return [
            (
                f"node {node}",
                [
                    (rank, self._devices[rank]["MANYHANDS_DEVICE"])
                    for rank in range(
                        node * cluster.ranks_per_node, (node + 1) * cluster.ranks_per_node
                    )
                ],
            )
            for node in range(cluster.nodes)
        ]

    def submit(
        self, ranks: Sequence[int], function: Callable[..., Any], args: Sequence[Any]
    ) -> dict[int, Answer]:
        """Send a call to these ranks: {rank: its Answer}."""
        sent = send(self._client, [self._ids[rank] for rank in ranks], function, args)
        return {rank: sent[self._ids[rank]] for rank in ranks}

    def exits(self) -> dict[int, Exit]:
        """How ranks have ended that were not asked to, by rank."""
        return self._engines.exits

    def record_path(self, rank: int) -> str:
        """The file with the record of a rank's calls."""
        return os.path.join(self.folder, f"calls-{rank}")

    def add_notes(self, outcome: Outcome) -> None:
        """Add the calls of the ranks that have not answered, from their records or reports."""
        for rank in outcome.asked:
            if rank not in outcome.notes:
                notes = read(self.record_path(rank), outcome.cell)
                outcome.notes[rank] = notes or self.reports.notes(rank, outcome.cell)
                if notes is None:
                    outcome.early.add(rank)

    def log_tail(self, rank: int) -> list[str]:
        """The last lines that C++ libraries wrote to the stderr of a rank, if they can be read."""
        return self._engines.log_tail(rank)

    def look_at(self, rank: int) -> Stand | None:
        """Where a rank is that does not report, as its faulthandler writes it.

        None where that is not known.
        """
        if rank not in self._stacks:
            engines = self._engines
            self._stacks[rank] = SignalledStack(
                os.path.join(self.folder, f"stacks-{rank}"),
                lambda: engines.signal(rank, SIGNAL),
                lambda: engines.processor_s(rank),
            )
        return self._stacks[rank].look()

    def tf_config(self, rank: int) -> TaskConfig | None:
        """The TF_CONFIG that a rank has set, or None."""
        return tf_config.read(os.path.join(self.folder, f"tf-config-{rank}"))

    def struck(self, rank: int) -> list[str]:
        """Where a fatal signal struck a rank, as the module `stack` describes it."""
        return struck(os.path.join(self.folder, f"crash-{rank}.log"))

    def interrupt(self, watch: Watch) -> None:
        """The stop button: SIGINT to every unfinished rank, and a moment to answer.

        A call inside a C++ library does not answer.
        """
        for rank in watch.unfinished:
            self._engines.signal(rank, signal.SIGINT)
        deadline = time.monotonic() + STOP_S
        while watch.pending and time.monotonic() < deadline:
            try:
                watch._collect()
                time.sleep(0.01)
            except KeyboardInterrupt:  # pressed again: no need to wait longer
                return

    def renew(self, limit: StartLimit) -> None:
        """New processes for all ranks."""
        self._whole = False
        self._engines.kill(self._client, list(self._ids.values()))
        self._start_ranks(limit)
        self._whole = True

    # ---------------------------------------------------------------- controller

    def controller_runs(self) -> bool:
        """Whether all processes of the controller still run.

        They are the one that passes on what is asked and answered, and those that it has started.
        """
        return controller_runs(self._ipp_cluster) and all(
            is_running(process) for process in self._controller_children
        )

    def can_renew(self) -> bool:
        """Whether `renew` has what it needs; else only a new Runtime helps."""
        return self._whole and self.controller_runs()

    def stop(self) -> None:
        """End everything, quietly and quickly."""
        self._whole = False
        if self.reports:
            self.reports.close()
        if self._engines:
            self._engines.stop()
        if self._client:
            self._client.close()
        self._stop_controller()
        if self._port is not None:
            self._port.close()
        if self._guard.poll() is None:
            assert self._guard.stdin is not None  # a pipe
            try:
                self._guard.stdin.write("done\n")
                self._guard.stdin.close()
            except (BrokenPipeError, ValueError):  # it has ended, or was told to end before
                pass
            try:
                self._guard.wait(5)
            except subprocess.TimeoutExpired:
                self._guard.kill()
                # on a busy machine it may still take a while
                with suppress(subprocess.TimeoutExpired):
                    self._guard.wait(5)
        if self._ipp_cluster is not None:  # on Slurm it lies where all hosts see it
            shutil.rmtree(self._ipp_cluster.profile_dir, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stop_controller(self) -> None:
        deadline = time.monotonic() + 5
        while (
            self._starts_controller
            and getattr(self._ipp_cluster.controller, "pid", -1) < 0
            and time.monotonic() < deadline
        ):
            # in a notebook a thread of ipyparallel goes on to start what was stopped half-way
            time.sleep(0.02)
        controller = self._ipp_cluster and self._ipp_cluster.controller
        if controller is None:
            return
        pid = getattr(controller, "pid", 0)
        if pid > 0 and getattr(controller, "process", None) is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            # the launcher's own thread takes the exit status
            if controller._wait_thread is not None:
                controller._wait_thread.join(5)
        else:
            self._ipp_cluster.stop_controller_sync()
