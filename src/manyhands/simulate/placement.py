"""Which links a group of ranks has on a machine of nodes, and what its all-reduces cost there.

A group is `ranks` ranks that are `apart` places from each other, in the numbering of
`training_step`; nodes are filled in this order, and groups that work at the same time share a
node's links evenly. All times are seconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyhands.simulate import clocks as calls
from manyhands.simulate.collective_costs import (
    double_tree_s,
    hierarchical_s,
    in_network_s,
    message_s,
    node_ring_s,
    parameter_server_s,
    ring_s,
    torus_s,
)

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array
    from manyhands.simulate.training_step import Layer, Machine, Way

ALL_REDUCES = (
    "ring",
    "tree",
    "double tree",
    "in network",
    "torus",
    "halving and doubling",
    "hierarchical",
    "hierarchical, halving and doubling",
    "parameter servers",
    "auto",
)
# "auto" takes the fastest of them for each message, as NCCL does
AUTO = ("ring", "double tree", "in network", "torus")
ADDS = ("", "inside", "everywhere")  # where a machine's switches can add numbers


def link(machine: Machine, ranks: int, apart: int) -> tuple[float, float]:
    """The slowest link of the group, as (latency_s, bytes_per_s)."""
    if ranks * apart <= machine.ranks_per_node:
        return inside(machine, ranks)
    return shared(machine, min(apart, machine.ranks_per_node))


def inside(machine: Machine, ranks: int) -> tuple[float, float]:
    """A link inside a node while `ranks` of its ranks send.

    Where the node's ranks share a bus, each gets a part.
    """
    latency_s, bytes_per_s = machine.inside
    return latency_s, bytes_per_s / min(machine.inside_shared_by, max(1, ranks))


def shared(machine: Machine, groups: int) -> tuple[float, float]:
    """What one of `groups` groups has of a node's links to other nodes.

    It uses one link at most.
    """
    latency_s, bytes_per_s = machine.between
    return latency_s, bytes_per_s * min(1, machine.links_per_node / groups)


def in_node(machine: Machine, ranks: int, apart: int) -> int:
    """How many of the group's ranks share a node: a divisor of `ranks`."""
    inner = max(1, min(ranks, machine.ranks_per_node // apart))
    while ranks % inner:
        inner -= 1
    return inner


def on_nodes(
    machine: Machine, ranks: int, apart: int
) -> tuple[int, int, tuple[float, float], tuple[float, float]]:
    """The group as models of two kinds of links take it: (nodes, ranks on each, inside, between).

    `between` is all links of a node that the group has, as one: a rank uses one link at most.
    """
    inner, groups = in_node(machine, ranks, apart), min(apart, machine.ranks_per_node)
    latency_s, bytes_per_s = machine.between
    all_links = latency_s, bytes_per_s * min(machine.links_per_node / groups, inner)
    return ranks // inner, inner, inside(machine, inner * groups), all_links


def ring(machine: Machine, ranks: int, apart: int, n_bytes: float) -> float:
    """The seconds of an all-reduce of a group along rings (`node_ring_s`).

    On a torus they are those of `torus_s`.
    """
    if machine.torus and ranks * apart <= machine.ranks_per_node:
        return torus_s(ranks, n_bytes, *machine.inside, machine.torus)
    nodes, inner, within, between = on_nodes(machine, ranks, apart)
    return node_ring_s(nodes, inner, n_bytes, within, between)


def all_reduce(machine: Machine, way: Way, clocks: Array, n_bytes: float) -> Array:
    """The clocks of the replicas after an all-reduce of `n_bytes`.

    They come to it at `clocks`, an array [data].
    """
    slowest = link(machine, way.data, way.split)
    if way.all_reduce == "tree":
        return calls.tree(clocks, n_bytes, slowest)
    if way.all_reduce == "halving and doubling":
        return calls.halving_doubling(clocks, n_bytes, slowest)
    if way.all_reduce == "parameter servers" and way.servers:
        return calls.parameter_server(clocks, n_bytes, slowest, way.servers, way.overhead_s)
    seconds = _together_s(machine, way, way.all_reduce, n_bytes) if len(clocks) > 1 else 0.0
    together: Array = clocks.max() + seconds + 0 * clocks
    return together


def supports(machine: Machine, way: Way, name: str) -> bool:
    """Whether the machine has what this all-reduce needs.

    This may be switches that add, or a torus around all replicas.
    """
    if name == "torus":
        return bool(machine.torus) and way.data * way.split <= machine.ranks_per_node
    return name != "in network" or bool(machine.adds)


def _together_s(machine: Machine, way: Way, name: str, n_bytes: float) -> float:
    """An all-reduce of ranks that begin together, and go on together."""
    if name == "auto":
        return min(
            _together_s(machine, way, candidate, n_bytes)
            for candidate in AUTO
            if supports(machine, way, candidate)
        )
    if name in ("ring", "torus"):
        return ring(machine, way.data, way.split, n_bytes)
    nodes, inner, within, between = on_nodes(machine, way.data, way.split)
    if name == "double tree":
        return double_tree_s(nodes, inner, n_bytes, within, between)
    if name == "in network":
        return in_network_s(
            nodes, inner, n_bytes, within, between, everywhere=machine.adds == "everywhere"
        )
    # one on each node, with a part of the tensor, which the other nodes send and get
    if name == "parameter servers":
        inside_s = ring_s(inner, n_bytes, *within)
        return inside_s + (
            parameter_server_s(nodes - 1, n_bytes / nodes, *between, overhead_s=way.overhead_s)
            if nodes > 1
            else 0.0
        )
    pattern = {
        "hierarchical": "ring",
        "hierarchical, halving and doubling": "halving and doubling",
    }[name]
    return hierarchical_s(nodes, inner, n_bytes, within, between, pattern=pattern)


def reduce_scatter(machine: Machine, way: Way, clocks: Array, n_bytes: float) -> Array:
    """As `all_reduce`, but each replica gets its part only; always along rings."""
    seconds = ring(machine, way.data, way.split, n_bytes) / 2 if len(clocks) > 1 else 0.0
    together: Array = clocks.max() + seconds + 0 * clocks
    return together


def borders_s(machine: Machine, blocks: Sequence[Sequence[Layer]], way: Way) -> list[float]:
    """The times of a message over each border of the pipeline.

    It is what the last layer before the cut hands on, of which each rank of a split layer sends its
    part. `blocks`: the layers of each stage.
    """
    border = link(machine, 2, way.split * way.data)
    return [message_s(block[-1].activation_bytes / way.split, *border) for block in blocks[:-1]]
