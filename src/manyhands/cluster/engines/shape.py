"""What engines need to know of a Cluster: the shape of its world, and what its ranks are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from manyhands.cluster.check_arguments import Framework
    from manyhands.cluster.engines.emulated import Link


class Shape(Protocol):
    """Only type checkers read it: at run time this is a `Cluster`."""

    nodes: int
    ranks_per_node: int
    framework: Framework | None
    profile: str
    threads_per_rank: int
    memory_mib: int | None
    link: Link | None

    @property
    def world_size(self) -> int:
        """The number of ranks."""
