"""What the profiles have in common whose engines are started by a launcher of ipyparallel's.

`Profile.make` configures an `ipyparallel.Cluster`, `start` starts its engines and says which engine
is which rank, and `stop` ends them all. An engine's id is not its rank, because ids grow with every
renewal. The profiles are in `mpi_profile.py`, `slurm_profile.py` and `ssh_profile.py`.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.cluster.engines.reach import (
    START_S,
    answers,
    controller_runs,
    until_answering,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import ipyparallel as ipp
    from traitlets.config import Config

    from manyhands.cluster.engines.reach import StartLimit
    from manyhands.cluster.payloads import EngineFacts

# a job may have to wait in Slurm's queue
START_TIMEOUT_S = float(os.environ.get("MANYHANDS_START_S", 120))
HEARTBEAT_MS, MISSES = 200, 50  # an engine counts as lost after 10 s of silence


class Profile:
    """What differs between the ways of starting engines."""

    name = ""
    launcher = ""  # the name of ipyparallel's launcher
    emulated_nodes = False
    shared_folder = True  # a job's files must be where all hosts see them: below the home folder

    def make(
        self,
        nodes: int,
        ranks_per_node: int,
        folder: str,
        framework: str | None = None,
        log_level: int = logging.ERROR,
    ) -> ipp.Cluster:
        """An `ipyparallel.Cluster`, configured and not started.

        `folder` is this cluster's own, on this machine.
        """
        import ipyparallel as ipp
        from IPython.paths import get_ipython_dir
        from traitlets.config import Config

        self.nodes, self.ranks_per_node = nodes, ranks_per_node
        config = Config()
        config.EngineLauncher.engine_args = [
            "--log-level=40",
            f"--IPEngine.timeout={START_S}",
            *_import_at_start(framework),
        ]
        shared = os.path.join(get_ipython_dir(), f"profile_{os.path.basename(folder)}")
        cluster = ipp.Cluster(
            engines=self.launcher,
            profile_dir=shared if self.shared_folder else os.path.join(folder, "profile"),
            n=nodes * ranks_per_node,
            config=config,
            load_profile=False,
            log_level=log_level,
            shutdown_atexit=False,
            controller_args=[
                *(
                    f"--HeartMonitor.period={HEARTBEAT_MS}",
                    f"--HeartMonitor.max_heartmonitor_misses={MISSES}",
                ),
                "--log-level=40",
            ],
        )
        if not self.emulated_nodes:
            cluster.controller_ip, cluster.controller_location = "*", address()
        self.configure(config, cluster, folder)
        cluster.config = config
        return cluster

    def configure(self, config: Config, cluster: ipp.Cluster, folder: str) -> None:
        """Set what this kind of launcher needs."""

    def report_address(self) -> str:
        """The address of this kernel for its ranks."""
        return "127.0.0.1" if self.emulated_nodes else address()

    def start(
        self, cluster: ipp.Cluster, client: ipp.Client, limit: StartLimit
    ) -> dict[int, tuple[int, EngineFacts]]:
        """Start the engines; {rank: (engine id, facts)} when all have come.

        Ranks follow the nodes' order.

        `limit` counts from when they have come: until then START_TIMEOUT_S does.
        """
        n, before = self.nodes * self.ranks_per_node, set(client.ids)
        cluster.start_engines_sync(n)
        deadline = time.monotonic() + START_TIMEOUT_S
        while len(new := sorted(set(client.ids) - before)) < n:
            why = self.failure(cluster)
            if why or time.monotonic() > deadline:
                raise RuntimeError(
                    self.too_few.format(came=len(new), n=n, seconds=START_TIMEOUT_S) + why
                )
            time.sleep(0.05)
        limit.begin()
        until_answering(client, new, limit)
        facts = answers(
            {engine: client[engine].apply_async(self.rank_of()) for engine in new}, limit
        )
        order = sorted(new, key=lambda engine: self.sort_key(facts[engine]))
        self._check_nodes([facts[engine]["host"] for engine in order])
        return {rank: (engine, facts[engine]) for rank, engine in enumerate(order)}

    def failure(self, cluster: ipp.Cluster) -> str:
        """What the launcher wrote, if it has ended already; "" while it may still start engines."""
        return ""

    def rank_of(self) -> Callable[[], EngineFacts]:
        """A function to run on an engine: who it is."""
        return _facts

    def sort_key(self, facts: EngineFacts) -> Any:
        """What the engines are to be sorted by, so that their order is that of the ranks."""
        raise NotImplementedError

    def _check_nodes(self, hosts: list[str]) -> None:
        if self.emulated_nodes:
            return
        per_node = [
            hosts[i : i + self.ranks_per_node] for i in range(0, len(hosts), self.ranks_per_node)
        ]
        names = [set(group) for group in per_node]
        if any(len(group) != 1 for group in names) or len(set.union(*names)) != self.nodes:
            raise RuntimeError(
                f"{self.nodes} nodes of {self.ranks_per_node} ranks were asked for, "
                f"and these hosts came: {hosts}."
            )

    def stop(self, cluster: ipp.Cluster, client: ipp.Client) -> None:
        """End all engines, also those that hang in a C++ call.

        Returns when the controller has forgotten them.
        """
        with suppress(Exception):  # no engine is left
            client.send_signal(9, block=False)  # each engine's nanny kills it
        deadline = time.monotonic() + 2
        while client.ids and controller_runs(cluster) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.stop_launchers(cluster, client)
        deadline = time.monotonic() + START_TIMEOUT_S
        while client.ids and controller_runs(cluster) and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop_launchers(self, cluster: ipp.Cluster, client: ipp.Client) -> None:
        """End what has started the engines."""
        cluster.stop_engines_sync()

    too_few = "{came} of {n} ranks came within {seconds:.0f} s. "


def address() -> str:
    """This machine's address as other hosts see it.

    MANYHANDS_ADDRESS overrides it where the guess is wrong, for example with several networks.
    """
    if os.environ.get("MANYHANDS_ADDRESS"):
        return os.environ["MANYHANDS_ADDRESS"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: asks only which way out would be taken
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostbyname(socket.gethostname())


def need_program(program: str, remedy: str) -> None:
    """RuntimeError, with the remedy, where `program` is not on the path."""
    if shutil.which(program) is None:
        raise RuntimeError(f"{program} is not on the path. {remedy}")


def _import_at_start(framework: str | None) -> list[str]:
    modules = {"torch": "torch", "tensorflow": "tensorflow", "both": "torch, tensorflow"}.get(
        framework or ""
    )
    # without a search for garbage, as in the fork server
    return (
        [f"--IPEngine.startup_command=import gc; gc.disable(); import {modules}; gc.enable()"]
        if modules
        else []
    )


def _facts() -> EngineFacts:
    """Runs on an engine: where it is, and the number that its launcher gave it."""
    import os

    from manyhands.cluster.engines.profiles import address

    def number(*names: str) -> int | None:
        return next((int(os.environ[name]) for name in names if name in os.environ), None)

    reached_at = (
        os.environ.get("SSH_CONNECTION", "").split()[2:3]
        if "SLURM_PROCID" not in os.environ
        else []
    )
    return {
        "host": os.environ.get("SLURMD_NODENAME") or "".join(reached_at) or os.uname().nodename,
        "address": "".join(reached_at) or address(),
        "pid": os.getpid(),
        "mpi_rank": number("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"),
        "slurm_procid": number("SLURM_PROCID"),
    }
