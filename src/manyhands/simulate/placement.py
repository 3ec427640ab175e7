"""Which links a group of ranks has on a machine of nodes, and what its all-reduces cost there.

A group is `ranks` ranks that are `apart` places from each other, in the numbering of `training_step`; nodes are filled
in this order, and groups that work at the same time share a node's links evenly. All times are seconds, sizes bytes.
"""

from manyhands.simulate import clocks as calls
from manyhands.simulate.collective_costs import halving_doubling_s, hierarchical_s, message_s, ring_s

ALL_REDUCES = ("ring", "tree", "halving and doubling", "hierarchical", "hierarchical, halving and doubling",
               "parameter servers", "fastest")
FASTEST_OF = ("ring", "tree", "hierarchical")  # for each message anew, as libraries choose by its size


def link(machine, ranks, apart):
    """The slowest link on a ring through the group, as (latency_s, bytes_per_s)."""
    if ranks * apart <= machine.ranks_per_node:
        return machine.inside
    return shared(machine, min(apart, machine.ranks_per_node))


def shared(machine, groups):
    """What one of `groups` groups has of a node's links to other nodes, of which it uses one at most."""
    latency_s, bytes_per_s = machine.between
    return latency_s, bytes_per_s * min(1, machine.links_per_node / groups)


def in_node(machine, ranks, apart):
    """How many of the group's ranks share a node: a divisor of `ranks`."""
    inner = max(1, min(ranks, machine.ranks_per_node // apart))
    while ranks % inner:
        inner -= 1
    return inner


def all_reduce(machine, way, clocks, n_bytes):
    """The clocks of the replicas, an array [data], after an all-reduce of `n_bytes` that they come to at `clocks`."""
    ranks, one = len(clocks), link(machine, way.data, way.split)
    if way.all_reduce == "fastest":
        each = (all_reduce(machine, way._replace(all_reduce=name), clocks, n_bytes) for name in FASTEST_OF)
        return min(each, key=lambda stop: stop.max())
    if way.all_reduce == "ring":
        return calls.ring(clocks, n_bytes, one)
    if way.all_reduce == "tree":
        return calls.tree(clocks, n_bytes, one)
    if way.all_reduce == "halving and doubling":
        return calls.halving_doubling(clocks, n_bytes, one)
    if way.all_reduce == "parameter servers" and way.servers:
        return calls.parameter_server(clocks, n_bytes, one, way.servers)
    return clocks.max() + (_in_levels_s(machine, way, n_bytes) if ranks > 1 else 0.0) + 0 * clocks


def _in_levels_s(machine, way, n_bytes):
    """An all-reduce of ranks that begin together: inside the nodes first, then between them, then inside again."""
    inner = in_node(machine, way.data, way.split)
    nodes, groups = way.data // inner, min(way.split, machine.ranks_per_node)
    latency_s, bytes_per_s = machine.between
    between = latency_s, bytes_per_s * min(machine.links_per_node / groups, inner)  # all links of the node that it has
    if way.all_reduce == "hierarchical":
        return hierarchical_s(nodes, inner, n_bytes, machine.inside, between)
    inside_s = ring_s(inner, n_bytes, *machine.inside)
    if way.all_reduce == "parameter servers":  # one on each node: all but its own part goes out, and comes back
        return inside_s + (2 * message_s(n_bytes * (nodes - 1) / nodes, *between) if nodes > 1 else 0.0)
    return inside_s + halving_doubling_s(nodes, n_bytes, *between)


def reduce_scatter(machine, way, clocks, n_bytes):
    """As `all_reduce`, but each replica gets its part only; always along a ring."""
    return calls.ring_half(clocks, n_bytes, link(machine, way.data, way.split))


def borders_s(machine, blocks, way):
    """The times of a message over each border of the pipeline: what the last layer before the cut hands on, of which
    each rank of a split layer sends its part. `blocks`: the layers of each stage."""
    one = link(machine, 2, way.split * way.data)
    return [message_s(block[-1].activation_bytes / way.split, *one) for block in blocks[:-1]]
