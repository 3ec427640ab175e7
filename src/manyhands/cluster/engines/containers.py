"""The containers profile, in which the nodes are containers.

Each has its own address, memory and processors (docker/compose.yaml).

Nodes and notebook share a folder, MANYHANDS_FOLDER. In each node `python -m
manyhands.cluster.engines.container_node` waits at a socket there (container_node.py) and gives
whoever connects a fork server of their own: the same commands and events as in the local profile,
through a socket instead of two pipes. When the connection ends, all ranks of that node have ended:
so a lost node is noticed immediately.
"""

from __future__ import annotations

import json
import os
import queue
import re
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.cluster.engines.local import LocalEngines
from manyhands.cluster.engines.profiles import START_TIMEOUT_S, address
from manyhands.cluster.engines.reach import START_S, StartLimit, answers
from manyhands.cluster.on_rank import agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import ipyparallel as ipp

    from manyhands.cluster.engines.shape import Shape

NO_FOLDER = (
    "The containers profile needs the folder that the notebook and its nodes share, in "
    "MANYHANDS_FOLDER. `docker compose --profile ring up` in the folder docker/ sets it."
)
TOO_FEW = (
    "{wanted} nodes were requested, but only {came} arrived within {seconds:.0f} s (looked in "
    "{folder}). Start more: docker compose --profile ring up --detach --scale node={wanted}"
)
LOST = "the connection to {node} ended before it was ready"


def nodes_folder() -> str:
    """Where the nodes' sockets lie. ValueError where MANYHANDS_FOLDER is not set."""
    if not os.environ.get("MANYHANDS_FOLDER"):
        raise ValueError(NO_FOLDER)
    return os.path.join(os.environ["MANYHANDS_FOLDER"], "nodes")


class Node:
    """The fork server that one node gave us. OSError if no process answers at `path`."""

    def __init__(
        self,
        number: int,
        path: str,
        frameworks: list[str],
        on_event: Callable[[dict[str, Any]], None],
        on_end: Callable[[Node], None],
    ) -> None:
        self.number = number
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.ready, self._on_event = False, on_event
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
            self._socket.settimeout(START_S)
            self._lines = self._socket.makefile("r")
            self.send_command(frameworks=frameworks)
            self.address = json.loads(self._lines.readline() or "{}").get("address")
            self._socket.settimeout(None)
        except (OSError, ValueError):
            self._socket.close()
            raise
        if self.address is None:  # it has ended just now
            self._socket.close()
            raise ConnectionError(path)
        self._thread = threading.Thread(
            target=self._listen, args=(on_end,), daemon=True, name=f"node-{number}"
        )
        self._thread.start()

    def __str__(self) -> str:
        return f"node {self.number} ({self.address})"

    def send_command(self, **command: Any) -> None:
        """Send a command, which has no effect if the node is lost."""
        with suppress(OSError):
            self._socket.sendall(json.dumps(command).encode() + b"\n")

    def runs(self) -> bool:
        """Whether the connection to the node still exists."""
        return self._thread.is_alive()

    def _listen(self, on_end: Callable[[Node], None]) -> None:
        with suppress(OSError, ValueError):  # the connection broke, in the middle of a line perhaps
            for line in self._lines:
                event = json.loads(line)
                (self.events.put if event["event"] in ("ready", "failed") else self._on_event)(
                    event
                )
        self.events.put({"event": "failed", "why": LOST.format(node=self)})
        on_end(self)

    def close(self) -> None:
        """End the fork server with all its ranks."""
        with suppress(OSError):
            # the fork server reads the end, kills its ranks and ends
            self._socket.shutdown(socket.SHUT_WR)
        self._thread.join(5)
        self._lines.close()
        self._socket.close()


class ContainerEngines(LocalEngines):
    """Engines in containers, in the first nodes that answer, in the order of their numbers.

    A lost node is replaced by the next one, or by itself.
    """

    # no process of ours: when this kernel ends, its connections end, and with them the fork servers
    group = None

    def __init__(self, cluster: Shape, folder: str, frameworks: list[str]) -> None:
        self._wanted, self._ranks_per_node = cluster.nodes, cluster.ranks_per_node
        self._nodes: list[Node] = []
        self._place, self.report_ip = nodes_folder(), address()
        super().__init__(folder, frameworks, cluster.memory_mib)

    def _start_fork_server(self) -> None:
        """Connect to nodes that exist; they import the framework while the controller starts."""
        self._connect()

    def _connect(self) -> None:
        self._nodes = [node for node in self._nodes if node.runs()]
        taken = {node.number for node in self._nodes}
        for number, path in self._answering():
            if number not in taken and len(self._nodes) < self._wanted:
                with suppress(OSError, ValueError):
                    self._nodes.append(Node(number, path, self.frameworks, self._note, self._lost))
        self._nodes.sort(key=lambda node: node.number)

    def _answering(self) -> list[tuple[int, str]]:
        """[(number, path of the socket)] of all nodes that have been there; some may have gone."""
        names = os.listdir(self._place) if os.path.isdir(self._place) else []
        return sorted(
            (int(match[1]), os.path.join(self._place, name))
            for name in names
            if (match := re.fullmatch(r"(\d+)\.sock", name))
        )

    def _make_ready(self, limit: StartLimit) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            self._connect()
            if len(self._nodes) == self._wanted and all(
                self._is_ready(node) for node in self._nodes
            ):
                return limit.begin()
            if time.monotonic() > deadline:
                raise RuntimeError(
                    TOO_FEW.format(
                        wanted=self._wanted,
                        came=len(self._nodes),
                        seconds=START_TIMEOUT_S,
                        folder=self._place,
                    )
                )
            time.sleep(0.1)

    def processor_s(self, rank: int) -> float:
        """Always OSError, because a rank's process cannot be seen from here."""
        raise OSError("the number of a process in a container has no meaning outside of it")

    def _is_ready(self, node: Node) -> bool:
        """Whether its fork server has imported the frameworks.

        A node that is lost meanwhile has not; one that cannot import them raises RuntimeError.
        """
        try:
            node.ready = (
                node.ready
                or self._next_event(node.events, f"the log of {node}", StartLimit())["event"]
                == "ready"
            )
        except RuntimeError:
            if node.runs():
                raise
        return node.ready and node.runs()

    def _note(self, event: Any) -> None:
        if event["event"] == "forked":
            self.pids[event["rank"]] = event["pid"]
        elif event["event"] == "exit" and self.pids.get(event["rank"]) == event["pid"]:
            self.exits[event["rank"]] = event

    def _lost(self, node: Node) -> None:
        for rank in list(self.pids):
            if self._node_of(rank) is node:
                self.exits.setdefault(rank, {"status": None, "memory": False, "node": str(node)})

    def _node_of(self, rank: int) -> Node:
        return self._nodes[rank // self._ranks_per_node]

    def _send_command(self, **command: Any) -> None:
        self._node_of(command["rank"]).send_command(**command)

    def _reachable(self) -> bool:
        return True

    def start(
        self, client: ipp.Client, environments: list[dict[str, str]], limit: StartLimit
    ) -> dict[int, int]:
        """Start the ranks as on one machine, then ask them for a port and their devices."""
        ids = super().start(client, environments, limit)

        def ask(rank: int, function: Callable[..., Any], *args: Any) -> Any:
            return answers({ids[rank]: client[ids[rank]].apply_async(function, *args)}, limit)[
                ids[rank]
            ]

        self._master = ask(0, agent.choose_port)
        self._devices = {
            rank: ask(rank, agent.own_devices, rank % self._ranks_per_node, self._ranks_per_node)
            for rank in ids
        }
        return ids

    def environment_of(self, rank: int, environment: dict[str, str]) -> dict[str, str]:
        """The ranks meet at the first node's address, and each node shares out its own GPUs."""
        return {
            **environment,
            "MASTER_ADDR": self._nodes[0].address,
            "MASTER_PORT": str(self._master),
            **self._devices[rank],
        }

    def stop(self) -> None:
        """End the ranks on all nodes and close the connections to them."""
        for node in self._nodes:
            node.close()
        self._nodes = []
