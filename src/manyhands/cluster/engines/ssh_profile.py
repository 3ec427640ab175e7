"""The profile "ssh": the ranks are started on other hosts over SSH."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

from manyhands.cluster.engines.profiles import Profile, need_program

if TYPE_CHECKING:
    import ipyparallel as ipp
    from traitlets.config import Config

    from manyhands.cluster.payloads import EngineFacts


class Ssh(Profile):
    """Hosts that SSH reaches without a password.

    They have the same Python at the same path, or MANYHANDS_PYTHON.
    """

    name, launcher, shared_folder = "ssh", "ssh", False

    def __init__(self, hosts: list[str] | None = None) -> None:
        self.hosts = hosts or [
            host.strip()
            for host in os.environ.get("MANYHANDS_HOSTS", "").split(",")
            if host.strip()
        ]
        if not self.hosts:
            raise ValueError(
                "The ssh profile needs hosts: set MANYHANDS_HOSTS=node1,node2 (or user@node1:port)."
            )

    def configure(self, config: Config, cluster: ipp.Cluster, folder: str) -> None:
        """Set the hosts and their Python; ValueError where there are fewer hosts than nodes."""
        need_program("ssh", "`apt-get install openssh-client` brings it.")
        if len(self.hosts) < self.nodes:
            raise ValueError(
                f"{self.nodes} nodes were asked for, and MANYHANDS_HOSTS names {len(self.hosts)}."
            )
        config.SSHEngineSetLauncher.engines = dict.fromkeys(
            self.hosts[: self.nodes], self.ranks_per_node
        )
        config.SSHLauncher.remote_python = os.environ.get("MANYHANDS_PYTHON", sys.executable)

    def sort_key(self, facts: EngineFacts) -> tuple[int, str, int]:
        """Nodes in the order of the hosts asked for, by the address at which ssh reached them."""
        addresses = [
            socket.gethostbyname(host.rpartition("@")[2].partition(":")[0]) for host in self.hosts
        ]
        return (
            addresses.index(facts["host"]) if facts["host"] in addresses else len(addresses),
            facts["host"],
            facts["pid"],
        )

    def stop_launchers(self, cluster: ipp.Cluster, client: ipp.Client) -> None:
        """End what has started the engines, without a word to engines that the controller saw die.

        Those need none of the several connections per rank by which ipyparallel asks.
        """
        if client.ids:
            return cluster.stop_engines_sync()
        for engine_set in cluster.engines.values():
            for launcher in engine_set.launchers.values():
                launcher._stop_waiting.set()
        cluster.engines.clear()
