"""All-reduces of ranks that do not begin together.

Each function takes the ranks' clocks, the times at which they call it, and returns the times at
which they go on.

A clock for each rank, seconds, along the last axis: an array [..., p] is many groups of p ranks at
once. `link` is a pair (latency_s, bytes_per_s), `n_bytes` the size of the tensor. To the links of
`collective_costs` one rule is added: a message begins when its sender and its receiver have both
come to it (a rendezvous). Ranks that begin together get what `collective_costs` gives.

    slow = np.zeros(1024); slow[7] = 0.002
    ring(slow, 100e6, link)          # all of them 2 ms later: one late rank makes all late

Along a ring, and by halving and doubling, every rank hears of every other before it goes on,
directly or through others, and all rounds of all ranks take the same time. So all go on together,
`the latest clock + the cost`: no round needs to be played, and 100,000 ranks cost a maximum.
tests/unit/simulate play every message instead, and find the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyhands.simulate.collective_costs import (
    halving_doubling_s,
    hierarchical_s,
    message_s,
    pattern_s,
    ring_s,
)

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array


def ring(clocks: Array, n_bytes: float, link: tuple[float, float]) -> Array:
    """An all-reduce along a ring (`ring_s`).

    All go on together, at the latest clock + 2 (p - 1) rounds.
    """
    return _together(clocks, ring_s(clocks.shape[-1], n_bytes, *link))


def ring_half(clocks: Array, n_bytes: float, link: tuple[float, float]) -> Array:
    """A reduce-scatter or an all-gather along a ring, p - 1 rounds.

    `n_bytes` is the size of the whole tensor.
    """
    return _together(clocks, pattern_s("all-gather", clocks.shape[-1], n_bytes, *link))


def halving_doubling(clocks: Array, n_bytes: float, link: tuple[float, float]) -> Array:
    """An all-reduce by halving and doubling (`halving_doubling_s`).

    The ranks above the largest power of two hand their tensor to one below first, and get the sum
    last; those without such a partner go on earlier, by that one message.
    """
    p = clocks.shape[-1]
    whole = 1 << (p.bit_length() - 1)
    extra_s = message_s(n_bytes, *link)
    halves = np.array(clocks, float)
    halves[..., : p - whole] = np.maximum(halves[..., : p - whole], halves[..., whole:]) + extra_s
    stop = _together(halves[..., :whole], halving_doubling_s(whole, n_bytes, *link))
    stop = np.concatenate([stop, stop[..., : p - whole]], -1)
    stop[..., : p - whole] += extra_s
    stop[..., whole:] += extra_s
    return stop


def tree(clocks: Array, n_bytes: float, link: tuple[float, float]) -> Array:
    """A sum along a binomial tree to rank 0, and a broadcast along the same tree (`tree_s`).

    Here ranks go on at different times: those far down the tree have to wait for the sum the
    longest.
    """
    clocks, p = np.array(clocks, float), clocks.shape[-1]
    rounds = [1 << i for i in range((p - 1).bit_length())]
    for away in rounds + rounds[::-1]:
        low = np.arange(0, p - away, 2 * away)
        met = np.maximum(clocks[..., low], clocks[..., low + away]) + message_s(n_bytes, *link)
        clocks[..., low] = clocks[..., low + away] = met
    return clocks


def hierarchical(
    clocks: Array,
    n_bytes: float,
    inside: tuple[float, float],
    between: tuple[float, float],
    ranks_per_node: int,
    links_per_node: int = 1,
) -> Array:
    """An all-reduce in two levels (`hierarchical_s`).

    The ranks of a node are neighbours in `clocks`.

    ValueError where the last axis is no multiple of `ranks_per_node`.
    """
    p = clocks.shape[-1]
    if p % ranks_per_node:
        raise ValueError(
            f"{p} ranks, {ranks_per_node} on each node: the last node would not be full"
        )
    nodes = p // ranks_per_node
    return _together(
        clocks, hierarchical_s(nodes, ranks_per_node, n_bytes, inside, between, links_per_node)
    )


def parameter_server(
    clocks: Array,
    n_bytes: float,
    link: tuple[float, float],
    servers: int = 1,
    overhead_s: float = 0.0,
) -> Array:
    """Workers send their gradients to `servers` servers, and get the sum (`parameter_server_s`).

    Each server keeps a part of the tensor, and answers when all have come.

    A server takes what arrives, first come, first served, at the rate of its link, and answers in
    the same order; between two messages it is busy for `overhead_s`. A worker's own link carries
    `n_bytes` each way. The first that came is the first that goes on.
    """
    latency_s, bytes_per_s = link
    workers = clocks.shape[-1]
    part_s, whole_s = n_bytes / servers / bytes_per_s, n_bytes / bytes_per_s
    each_s = part_s + overhead_s
    order = np.argsort(clocks, -1, kind="stable")
    arrive = np.take_along_axis(np.array(clocks, float), order, -1) + latency_s
    turn = np.arange(workers)
    # each after the one before it
    served = np.maximum.accumulate(arrive - turn * each_s, -1) + turn * each_s + part_s
    summed = np.maximum(served[..., -1:], arrive[..., -1:] + whole_s)
    answered = summed + latency_s + np.maximum(turn * each_s + part_s, whole_s)
    stop: Array = np.empty_like(answered)
    np.put_along_axis(stop, order, answered, -1)
    return stop


def _together(clocks: Array, seconds: float) -> Array:
    clocks = np.array(clocks, float)
    if clocks.shape[-1] > 1:
        clocks[:] = clocks.max(-1, keepdims=True) + seconds
    return clocks
