"""The profile "mpi": all ranks under one mpiexec on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.cluster.engines.profiles import Profile
from manyhands.cluster.launch.command_lines import mpiexec

if TYPE_CHECKING:
    from typing import Any

    import ipyparallel as ipp
    from traitlets.config import Config

    from manyhands.cluster.payloads import EngineFacts


class Mpi(Profile):
    """All ranks on this machine under one mpiexec, which is given as many hosts as nodes.

    MPI's rank is our rank.
    """

    name, launcher, emulated_nodes, shared_folder = "mpi", "mpi", True, False

    def configure(self, config: Config, cluster: ipp.Cluster, folder: str) -> None:
        """Set MPICH's mpiexec, with as many host names as nodes."""
        hosts = ",".join(f"node{node}:{self.ranks_per_node}" for node in range(self.nodes))
        config.MPILauncher.mpi_cmd = [mpiexec()]
        config.MPILauncher.mpi_args = ["-launcher", "fork", "-rmk", "user", "-hosts", hosts]
        config.MPILauncher.stop_seconds_until_kill = 1

    def failure(self, cluster: ipp.Cluster) -> str:
        """The end of mpiexec's output, if it has ended already, else ""."""
        if cluster.engine_set._popen_process.poll() is None:
            return ""
        return f"mpiexec has ended:\n{cluster.engine_set.get_output()[-2000:]}"

    @staticmethod
    def sort_key(facts: EngineFacts) -> Any:
        """MPI's rank."""
        return facts["mpi_rank"]
