"""The emulated profile, in which each node is a network namespace of this machine.

Between the nodes are links of a given rate and delay.

The ranks are those of the local profile, made by a fork server. What they send each other passes
the switch (host/namespaces.py). What they send to the notebook does not, because a rank's threads
that existed before it joined its node stay in the machine's own network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

from manyhands.cluster.engines.local import LocalEngines
from manyhands.cluster.host import namespaces
from manyhands.cluster.host.namespaces import Sent

if TYPE_CHECKING:
    import ipyparallel as ipp

    from manyhands.cluster.cluster import Cluster
    from manyhands.cluster.engines.reach import StartLimit
    from manyhands.cluster.engines.shape import Shape

RATE_MBIT, DELAY_MS = 100.0, 1.0
MOST_NODES = 250


class Link(NamedTuple):
    """What joins a node to the others: its rate each way, and how long a frame is under way."""

    rate_mbit: float
    delay_ms: float


def missing() -> str | None:
    """What this machine lacks for the emulated profile, in a sentence that says what to do.

    None if nothing is missing. Any process may ask; it takes 0.1 s.
    """
    try:
        Network(1, Link(RATE_MBIT, DELAY_MS)).close()
    except RuntimeError as error:
        return str(error)
    return None


def sent(cluster: Cluster) -> list[Sent]:
    """What each node of a cluster has sent to the others so far: a list of `Sent`, by node.

    Only the emulated profile's switch counts.

    `payload_bytes`: what programs have sent, each byte once; the machine's load does not change it.
    `repeated_bytes`: what TCP has sent again, which it does where an answer comes late.
    `frame_bytes`: all that the link has carried, headers, acknowledgements and repetitions
    included.
    """
    if cluster.link is None:
        raise ValueError(
            'What the nodes send is counted with profile="emulated" only, because '
            f"profile={cluster.profile!r} uses the network as it is."
        )
    with cluster._turn:  # while another thread runs a cell, a use would heal the cluster under it
        cluster._use()
        engines = cluster._check_running()._engines
        assert isinstance(engines, EmulatedEngines)  # in a cluster that has a link
        return engines.network.sent()


def link(
    profile: str, nodes: int, rate_mbit: float | None = None, delay_ms: float | None = None
) -> Link | None:
    """The `Link` of each node in this profile, with defaults for what is None.

    None in a profile that takes the network as it is.
    """
    if profile != "emulated":
        if rate_mbit is not None or delay_ms is not None:
            raise ValueError(
                'rate_mbit and delay_ms are for profile="emulated", because '
                f"profile={profile!r} uses the network as it is."
            )
        return None
    result = Link(
        RATE_MBIT if rate_mbit is None else rate_mbit, DELAY_MS if delay_ms is None else delay_ms
    )
    if not (
        all(isinstance(number, Real) for number in result)
        and 0 < result.rate_mbit < float("inf")
        and 0 <= result.delay_ms < float("inf")
    ):
        raise ValueError(
            f"rate_mbit must be above 0 and delay_ms 0 or more, not {result.rate_mbit!r} and "
            f"{result.delay_ms!r}."
        )
    if nodes > MOST_NODES:
        raise ValueError(f"The emulated network has addresses for {MOST_NODES} nodes, not {nodes}.")
    return result


class Network:
    """The process of the switch.

    `user`: file of the user namespace that it needed, or None; `nodes`: file of each node's
    namespace.

    Raises RuntimeError, with what is missing, where it cannot be made.
    """

    def __init__(self, nodes: int, link: Link) -> None:
        if sys.platform != "linux":
            raise RuntimeError(
                "The emulated network consists of network namespaces, which only Linux has."
            )
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                namespaces.__file__,
                str(nodes),
                str(link.rate_mbit),
                str(link.delay_ms),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # pipes
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        answer = json.loads(
            self._stdout.readline()
            or '{"why": "The switch of the emulated network did not start."}'
        )
        if "why" in answer:
            self.close()
            raise RuntimeError(answer["why"])
        self.user, self.nodes, self._asked = answer["user"], answer["nodes"], 0

    @property
    def group(self) -> int:
        """Its process group, for the guard."""
        return self._process.pid

    def runs(self) -> bool:
        """Whether the switch still runs."""
        return self._process.poll() is None

    def sent(self) -> list[Sent]:
        """A `Sent` of each node. An answer that an interrupt has left behind is passed over."""
        self._asked += 1
        try:
            os.write(self._stdin.fileno(), b"%d\n" % self._asked)  # nothing may stay in a buffer
            while (answer := json.loads(self._stdout.readline()))["asked"] != self._asked:
                pass
        except (BrokenPipeError, ValueError):
            raise RuntimeError(
                "The switch of the emulated network has ended. cluster.heal() starts a new switch, "
                "whose counts begin at 0."
            ) from None
        return [Sent(*numbers) for numbers in answer["sent"]]

    def close(self) -> None:
        """End the switch, and with it the namespaces that no rank lives in any more."""
        self._stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._stdout.close()


class EmulatedEngines(LocalEngines):
    """Engines on this machine, each in the network namespace of its node."""

    def __init__(self, cluster: Shape, folder: str, frameworks: list[str]) -> None:
        assert cluster.link is not None  # in this profile
        self._shape, self._ranks_per_node = (cluster.nodes, cluster.link), cluster.ranks_per_node
        self.network = Network(*self._shape)
        super().__init__(folder, frameworks, cluster.memory_mib)

    def _fork_server_environment(self) -> dict[str, str]:
        """The user namespace, which a process can only enter before it has threads.

        torch would warn for each connection that no name server knows the nodes' addresses.
        """
        user = {"MANYHANDS_USER_NAMESPACE": self.network.user} if self.network.user else {}
        return {"TORCH_CPP_LOG_LEVEL": "ERROR", **user}

    def environment_of(self, rank: int, environment: dict[str, str]) -> dict[str, str]:
        """The ranks meet at the first node's address.

        Its namespace is new: a port that is free on this machine is free there.
        """
        return {
            **environment,
            "MASTER_ADDR": namespaces.address(0),
            "GLOO_SOCKET_IFNAME": "eth0",
            "MANYHANDS_NETWORK_NAMESPACE": self.network.nodes[rank // self._ranks_per_node],
        }

    def start(
        self, client: ipp.Client, environments: list[dict[str, str]], limit: StartLimit
    ) -> dict[int, int]:
        """Start the ranks in their nodes, with a new network if the switch has ended."""
        # the switch was killed: the old user namespace has no rights over the new nodes
        if not self.network.runs():
            self.network.close()
            self.network = Network(*self._shape)
            self._end_fork_server()
        return super().start(client, environments, limit)

    def stop(self) -> None:
        """End the ranks, and then the network."""
        super().stop()
        self.network.close()
