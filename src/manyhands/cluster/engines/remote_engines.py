"""Engines that one of ipyparallel's launchers starts.

They run under MPI, in a Slurm job, or on hosts that SSH reaches.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from manyhands.cluster.engines.mpi_profile import Mpi
from manyhands.cluster.engines.reach import answers
from manyhands.cluster.engines.slurm_profile import Slurm
from manyhands.cluster.engines.ssh_profile import Ssh
from manyhands.cluster.on_rank import agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import ipyparallel as ipp

    from manyhands.cluster.engines.profiles import Profile
    from manyhands.cluster.engines.reach import StartLimit
    from manyhands.cluster.engines.shape import Shape
    from manyhands.cluster.payloads import EngineFacts, Exit


_PROFILES: dict[str, type[Profile]] = {"mpi": Mpi, "slurm": Slurm, "ssh": Ssh}


def make_profile(name: str, hosts: list[str] | None = None) -> Profile:
    """The profile "mpi", "slurm" or "ssh".

    `hosts` for ssh: ["node1", "user@node2:2222"], else MANYHANDS_HOSTS, comma-separated.
    """
    if name not in _PROFILES:
        raise ValueError(f"There is no profile {name!r}: use one of local, {', '.join(_PROFILES)}.")
    return Ssh(hosts) if name == "ssh" else _PROFILES[name]()


class RemoteEngines:
    """The operations of LocalEngines (local.py), carried out through the controller.

    Signals go by each engine's nanny.
    """

    connection_file: str | None = None  # the launchers find it themselves

    def __init__(self, cluster: Shape, folder: str) -> None:
        self.profile = make_profile(cluster.profile)
        self.ipp_cluster = self.profile.make(
            cluster.nodes, cluster.ranks_per_node, folder, cluster.framework
        )
        self.report_ip = self.profile.report_address()
        self.ranks_per_node = cluster.ranks_per_node
        self._client: ipp.Client | None = None
        self._ids: dict[int, int] = {}
        self.facts: dict[int, EngineFacts] = {}

    @property
    def exits(self) -> dict[int, Exit]:
        """Ranks that the controller has lost. How they ended is not known here."""
        alive = set(self._client.ids) if self._client else set()
        return {
            rank: {"status": None, "memory": False}
            for rank, engine in self._ids.items()
            if engine not in alive
        }

    def start(
        self, client: ipp.Client, environments: list[dict[str, str]], limit: StartLimit
    ) -> dict[int, int]:
        """Start the engines through the profile, and ask them for a port and their devices."""
        self._client, self._ids = client, {}
        started = self.profile.start(self.ipp_cluster, client, limit)
        self._ids = {rank: engine for rank, (engine, _) in started.items()}
        self.facts = {rank: facts for rank, (_, facts) in started.items()}
        self._master = self._ask(limit, 0, agent.choose_port)
        self._real = (
            {}
            if self.profile.emulated_nodes
            else {
                rank: self._ask(
                    limit, rank, agent.own_devices, rank % self.ranks_per_node, self.ranks_per_node
                )
                for rank in self._ids
            }
        )
        return self._ids

    def _ask(self, limit: StartLimit, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        engine = self._ids[rank]
        assert self._client is not None  # since start()
        return answers({engine: self._client[engine].apply_async(function, *args)}, limit)[engine]

    def environment_of(self, rank: int, environment: dict[str, str]) -> dict[str, str]:
        """What a rank learns of the world.

        Rank 0 lives where it was put, and real nodes have their own GPUs.
        """
        host = "127.0.0.1" if self.profile.emulated_nodes else self.facts[0]["address"]
        return {
            **environment,
            "MASTER_ADDR": host,
            "MASTER_PORT": str(self._master),
            **self._real.get(rank, {}),
        }

    def signal(self, rank: int, number: int) -> None:
        """Have a rank's nanny send it the signal `number`; this does not wait for it."""
        assert self._client is not None  # since start()
        self._client.send_signal(int(number), targets=self._ids[rank], block=False)

    def kill(self, client: ipp.Client, engine_ids: list[int]) -> None:
        """End every rank, and wait until the controller has forgotten them.

        Old and new ranks must not live side by side.
        """
        self._ids = {}
        self.profile.stop(self.ipp_cluster, client)

    def processor_s(self, rank: int) -> float:
        """Always OSError, because a rank on a different host cannot be seen from here."""
        raise OSError("a rank on a different host")

    def log_tail(self, rank: int) -> list[str]:
        """Always [], because the logs are on the ranks' hosts."""
        return []

    def stop(self) -> None:
        """End all ranks, and wait up to 5 s until ipyparallel's launchers have noticed it."""
        if self._client is not None and self._ids:
            self.kill(self._client, [])
            deadline = time.monotonic() + 5
            while self.ipp_cluster.engines and time.monotonic() < deadline:
                time.sleep(0.05)
