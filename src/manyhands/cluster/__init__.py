"""A cluster in a notebook: many ranks, watched, healed, and ended with the kernel.

Where the ranks live is the `profile`. With "emulated", each node is a network namespace of this
machine, and what ranks of different nodes send each other passes links of the rate and delay that
you ask for:

    from manyhands.cluster import Cluster, emulated

    emulated.missing()                  # None, or a sentence: what this machine lacks for it, and what to do
    # the defaults
    cluster = Cluster(nodes=3, ranks_per_node=1, framework="torch", profile="emulated", rate_mbit=100, delay_ms=1)
    cluster.link                        # Link(rate_mbit=100, delay_ms=1); None in the other profiles
    # by node, counted by the switch: [Sent(payload_bytes=3002160, repeated_bytes=0, frame_bytes=3042934), ...]
    emulated.sent(cluster)

Each node has a link of `rate_mbit` to the others, as much each way at once; a frame is `delay_ms`
under way. For S bytes to arrive at another node takes 8 S / (1e6 rate_mbit) + delay_ms / 1e3
seconds at least. TCP is the real one: at 100 Mbit/s from delay_ms=4 on, where more than ten frames
of 9000 bytes fit under way, its slow start shows too. The switch is a process that computes: one
core carries some ten busy links of 100 Mbit/s, or four of 1000; on a loaded machine a link is
slower than it says, never faster.

Compare `payload_bytes` before and after a cell: each byte that a program sent counts once, so a
busy machine shows the same number. There TCP sends some bytes twice; and a rank that reads its
device's counter (psutil's, where headers and repetitions are counted, too) may come late, and miss
what another rank of its node has sent. Ranks of one node talk over its loopback, at full speed.
Only the other nodes can be reached from a rank, not the machine, not the Internet. The backend is
gloo. Scripts started with `cluster.launch` run outside of the emulated network. Without Linux, or
where namespaces are forbidden, `Cluster` raises RuntimeError with that sentence.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what __getattr__ gives
    from manyhands.cluster.cluster import Cluster as Cluster
    from manyhands.cluster.engines import emulated as emulated
    from manyhands.cluster.faults.kinds import ClusterNotStarted as ClusterNotStarted
    from manyhands.cluster.faults.kinds import ClusterStopped as ClusterStopped
    from manyhands.cluster.faults.kinds import ControllerDied as ControllerDied
    from manyhands.cluster.faults.kinds import Fault as Fault
    from manyhands.cluster.faults.kinds import Hang as Hang
    from manyhands.cluster.faults.kinds import Interrupted as Interrupted
    from manyhands.cluster.faults.kinds import LimitExceeded as LimitExceeded
    from manyhands.cluster.faults.kinds import Mismatch as Mismatch
    from manyhands.cluster.faults.kinds import RankDied as RankDied
    from manyhands.cluster.faults.kinds import RankError as RankError
    from manyhands.cluster.faults.kinds import Where as Where

_FAULTS = [
    "ClusterNotStarted",
    "ClusterStopped",
    "ControllerDied",
    "Fault",
    "Hang",
    "Interrupted",
    "LimitExceeded",
    "Mismatch",
    "RankDied",
    "RankError",
    "Where",
]
_HOME = {
    "Cluster": "manyhands.cluster.cluster",
    **dict.fromkeys(_FAULTS, "manyhands.cluster.faults.kinds"),
}
__all__ = ["Cluster", *_FAULTS, "emulated"]


# the guard, the controller and a launched script need none of these
def __getattr__(name: str) -> object:
    if name == "emulated":
        return import_module("manyhands.cluster.engines.emulated")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'manyhands.cluster' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
