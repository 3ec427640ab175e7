"""What a communication pattern costs: the only place of the course that says so.

    pattern_s("ring", 64, 100e6, latency_s=30e-6, bytes_per_s=2e9)      # an all-reduce of 100 MB on 64 ranks
    rounds("all-to-all", 8, 1e6)                                         # [(7, 125000.0)]: the messages that it prices

`pattern_s` prices the patterns of `PATTERNS`, whose ranks all have alike links. Beside it are
functions for patterns that need more: two kinds of links (`hierarchical_s`, `node_ring_s`,
`double_tree_s`, `in_network_s`), a torus (`torus_s`), several servers (`parameter_server_s`), and a
chain of pieces (`chain_s`). Tutorials, checks, the hackathon's judge, pictures and the simulator
all ask here.

A message of n bytes takes `latency_s + n_bytes / bytes_per_s` (alpha + n beta). What the models
assume:

* all links are alike, and full duplex: a rank sends and receives at the same time, each at the full
  rate;
* messages between different pairs of ranks do not disturb each other;
* a rank takes part in one message in each direction at a time; only a parameter server has many
  under way at once;
* adding numbers up costs nothing, and all ranks begin at the same moment.

`p` is the number of ranks, `n_bytes` the size of the tensor, a number or an array. All functions
that end in `_s` return seconds, in the shape of `n_bytes`; with one rank there is nothing to send.
p < 1, a bandwidth of 0 or less and a size below 0 are a ValueError. A latency below 0 is allowed,
because the fit of a noisy measurement can give one.

Hockney 1994, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel Computing
20(3): the model of a message. Thakur, Rabenseifner, Gropp 2005, Optimization of collective
communication operations in MPICH, Int. J. High Perform. Comput. Appl. 19(1): of collectives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.simulate.checked_input import check_real, check_whole

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import N

PATTERNS = (
    "ring",
    "tree",
    "halving and doubling",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "reduce",
    "all-to-all",
    "server",
)


def pattern_s(
    pattern: str, p: int, n_bytes: N, latency_s: float, bytes_per_s: float, overhead_s: float = 0.0
) -> N:
    """The seconds of a pattern, one of `PATTERNS`, on `p` ranks with one link each.

    They are those of its `rounds`, one after the other.

    "server" are `p` workers with a server that is none of them (`parameter_server_s`). Its messages
    are not in rounds: they set out together, and each occupies the server for `overhead_s`, the o
    of LogP. In a round a rank handles one message, whose overhead the latency contains. ValueError
    for a pattern that does not exist.
    """
    if pattern == "server":
        return parameter_server_s(p, n_bytes, latency_s, bytes_per_s, overhead_s=overhead_s)
    check_real("overhead_s", overhead_s, unit=" seconds")
    return sum(
        (
            count * message_s(size, latency_s, bytes_per_s)
            for count, size in rounds(pattern, p, _bytes(n_bytes))
        ),
        0.0 * _bytes(n_bytes),
    )


def rounds(pattern: str, p: int, n_bytes: N) -> list[tuple[int, N]]:
    """The rounds of a pattern, one after the other: [(how many, bytes of the messages in each)].

    There are none for one rank.

    In a round a rank sends one message at most and receives one. `n_bytes` is the whole tensor: of
    an all-gather what all ranks have in the end, of an all-to-all what one rank sends and keeps.
    The ranks of a ring, an all-gather, a reduce-scatter and an all-to-all send in every round; so
    does the root of a broadcast. ValueError for another name, also "server", which has no rounds.
    """
    p = _ranks(p)
    if pattern == "halving and doubling":
        halvings = p.bit_length() - 1
        return [(2, n_bytes / 2**k) for k in range(1, halvings + 1)] + [(2, n_bytes)] * (
            p > 2**halvings
        )
    rounds_of = {
        "ring": (2 * (p - 1), n_bytes / p),
        "tree": (2 * _depth(p), n_bytes),
        **dict.fromkeys(("reduce-scatter", "all-gather", "all-to-all"), (p - 1, n_bytes / p)),
        **dict.fromkeys(("broadcast", "reduce"), (_depth(p), n_bytes)),
    }
    if pattern not in rounds_of:
        raise ValueError(f"pattern is {pattern!r}: there are {', '.join(PATTERNS[:-1])}")
    return [rounds_of[pattern]] if p > 1 else []


def sent_bytes(pattern: str, p: int, n_bytes: N) -> N | int:
    """The bytes of a rank that sends in every round (see `rounds`): 2 (p - 1)/p n for a ring."""
    return sum(count * size for count, size in rounds(pattern, p, n_bytes))


def message_s(n_bytes: N, latency_s: float, bytes_per_s: float) -> N:
    """One message from one rank to another."""
    return latency_s + _bytes(n_bytes) / _bandwidth(bytes_per_s)


def ring_s(p: int, n_bytes: N, latency_s: float, bytes_per_s: float) -> N:
    """Reduce-scatter and all-gather along a ring: 2 (p - 1) rounds, a p-th of the tensor in each.

    2 (p - 1) (alpha + n / (p B)). Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms
    for clusters of workstations, J. Parallel Distrib. Comput. 69(2).
    """
    return pattern_s("ring", p, n_bytes, latency_s, bytes_per_s)


def tree_s(p: int, n_bytes: N, latency_s: float, bytes_per_s: float) -> N:
    """A sum along a binomial tree to one rank, then a broadcast along the same tree.

    There are 2 log2 p rounds, log2 p rounded up, with the whole tensor in each.

    2 ceil(log2 p) (alpha + n / B). Thakur, Rabenseifner and Gropp 2005, section 4. Where p is no
    power of two, a sum can take less than that: some messages to one rank overlap.
    """
    return pattern_s("tree", p, n_bytes, latency_s, bytes_per_s)


def halving_doubling_s(p: int, n_bytes: N, latency_s: float, bytes_per_s: float) -> N:
    """Recursive halving (a reduce-scatter), then recursive doubling (an all-gather).

    There are 2 log2 p rounds, of n/2, n/4, ..., n/p bytes, and back.

    2 log2 p alpha + 2 (p - 1)/p n / B where p is a power of two: the rounds of a tree and the bytes
    of a ring. Else the ranks above the largest power of two q each give their tensor to one below
    before, and get the sum afterwards: 2 (alpha + n / B) more, with q in place of p. (There are
    other ways; gloo's makes blocks of 4 and 1 ranks of 5.) In each round all ranks send at once, to
    partners 1, 2, ..., q/2 places away: a network in which those messages share links is slower.
    Thakur, Rabenseifner and Gropp 2005, section 4; Rabenseifner 2004, Optimization of collective
    reduction operations, ICCS.
    """
    return pattern_s("halving and doubling", p, n_bytes, latency_s, bytes_per_s)


def chain_s(p: int, n_bytes: N, pieces: int, latency_s: float, bytes_per_s: float) -> N:
    """A broadcast along a chain of ranks, in so many pieces.

    A rank hands a piece on while it receives the next one.

    (p - 2 + pieces) (alpha + n / (pieces B)): the first piece needs p - 1 messages, and each other
    one arrives one message later. Without a rank to send to it costs nothing.
    """
    check_whole("pieces", pieces)
    if _ranks(p) == 1:
        return 0.0 * _bytes(n_bytes)
    return (p - 2 + pieces) * message_s(_bytes(n_bytes) / pieces, latency_s, bytes_per_s)


def hierarchical_s(
    nodes: int,
    ranks_per_node: int,
    n_bytes: N,
    inside: tuple[float, float],
    between: tuple[float, float],
    links_per_node: int = 1,
    pattern: str = "ring",
) -> N:
    """An all-reduce in two levels.

    It is a reduce-scatter inside each node, an all-reduce of each part between the nodes, and an
    all-gather inside each node.

    `inside` and `between` are links, pairs (latency_s, bytes_per_s). With g ranks on each of m
    nodes: 2 (g - 1) rounds of n/g bytes inside, and between the nodes g rings at once, each of 2
    (m - 1) rounds of n/(g m) bytes, which share the node's `links_per_node` links: 2 (g - 1)
    (alpha + n / (g B)) inside + 2 (m - 1) (alpha + n / (m l B)) between, for l links, of which no
    more than g are used. `pattern`: of the all-reduce between the nodes, with other rounds. Mikami
    et al. 2018, Massively distributed SGD, arXiv 1811.05233 (a torus of rings; the formula is
    ours).
    """
    _check_links(inside, between)
    shared = _bytes(n_bytes) / min(_ranks(links_per_node), _ranks(ranks_per_node))
    seconds: N = ring_s(ranks_per_node, n_bytes, *inside) + pattern_s(
        pattern, nodes, shared, *between
    )
    return seconds


def node_ring_s(
    nodes: int,
    ranks_per_node: int,
    n_bytes: N,
    inside: tuple[float, float],
    between: tuple[float, float],
    links_per_node: int = 1,
) -> N:
    """An all-reduce along rings that pass through a node's ranks before the next node, as in NCCL.

    There are as many rings (NCCL's channels) as a node has links to others, each with a part of the
    tensor, so that all links are used; a rank's link inside the node carries all rings. With p
    ranks, g on each of m nodes, a chunk makes 2 (p - 1) hops, of which at most h cross the network:
    2 m where g is 3 or more, one less where g is 2, two where it is 1. Latencies are passed hop by
    hop while other chunks use the links, so their *sum* counts, and the slowest link decides the
    rate B = min(inside, l between): (2 (p - 1) - h) alpha_inside + h alpha_between + 2 (p - 1) n /
    (p B). With links that are all alike this is `ring_s`; otherwise the two terms overlap in part,
    and it is an upper bound. NCCL, src/graph/tuning.cc, adds the same two terms, with h = 2 (m -
    1).
    """
    _check_links(inside, between)
    p, g = _ranks(nodes) * _ranks(ranks_per_node), ranks_per_node
    hops, across = 2 * (p - 1), 2 * nodes - max(0, 3 - g) if nodes > 1 else 0
    rate = _rate(nodes, g, inside, between, links_per_node)
    return (hops - across) * inside[0] + across * between[0] + hops * _bytes(n_bytes) / p / rate


def double_tree_s(
    nodes: int,
    ranks_per_node: int,
    n_bytes: N,
    inside: tuple[float, float],
    between: tuple[float, float],
    links_per_node: int = 1,
) -> N:
    """An all-reduce along two binary trees of nodes, each with half of the tensor, as in NCCL.

    In each node there is a chain of its ranks. Slices are so small that all hops are busy at the
    same time.

    A node that is inside one tree is a leaf of the other, so each sends 2 n bytes (n where there
    are two), about as much as in a ring, but the depth is only log2 of the nodes, rounded up. The
    same holds for the ranks of a chain: 2 ((g - 1) alpha_inside + ceil(log2 m) alpha_between) +
    max(2 n / inside, 2 n / (l between)). Sanders, Speck and Traeff 2009, Two-tree algorithms for
    full bandwidth broadcast, reduction and scan, Parallel Computing 35(12); NCCL,
    src/graph/tuning.cc, for the hops.
    """
    _check_links(inside, between)
    n = _bytes(n_bytes)
    slowest = max(
        min(_ranks(ranks_per_node) - 1, 2) / inside[1],
        min(_ranks(nodes) - 1, 2) / (_ranks(links_per_node) * between[1]),
    )
    return 2 * ((ranks_per_node - 1) * inside[0] + _depth(nodes) * between[0]) + n * slowest


def in_network_s(
    nodes: int,
    ranks_per_node: int,
    n_bytes: N,
    inside: tuple[float, float],
    between: tuple[float, float],
    links_per_node: int = 1,
    everywhere: bool = False,
) -> N:
    """An all-reduce in which switches add: those inside a node, or also those of the network.

    Those inside a node are NVLS; `everywhere` adds those of the network (SHARP). Without it, there
    is a double tree between the nodes (NCCL's NVLSTree).

    Inside, a switch reads n bytes of each of g ranks, adds, and hands n/g to each; then each sends
    its n/g, and the switch copies it to all: (1 + 1/g) n bytes each way. Between the nodes the sum
    of a node goes out and that of all comes back, n bytes each way over l links; with a double tree
    2 n. All parts are passed on in slices, so the slower one decides the rate: 4 alpha_inside +
    hops alpha_between + max((1 + 1/g) n / inside, n or 2 n / (l between)), with 2 hops, or 2
    ceil(log2 m) for the tree; a rank and its switch are one hop apart. Graham et al. 2016, Scalable
    hierarchical aggregation protocol (SHArP), COM-HPC. The formula is ours.
    """
    _check_links(inside, between)
    g, n = _ranks(ranks_per_node), _bytes(n_bytes)
    if _ranks(nodes) * g == 1:
        return 0.0 * n
    inside_s = (1 + 1 / g) * n / inside[1] if g > 1 else 0.0 * n
    hops, times = (
        (2 * (nodes > 1), nodes > 1) if everywhere else (2 * _depth(nodes), min(nodes - 1, 2))
    )
    across_s = times * n / (_ranks(links_per_node) * between[1])
    seconds: N = 4 * (g > 1) * inside[0] + hops * between[0] + np.maximum(inside_s, across_s)
    return seconds


def torus_s(p: int, n_bytes: N, latency_s: float, bytes_per_s: float, axes: int = 3) -> N:
    """An all-reduce of a block of p chips of a torus with so many axes, as on TPUs.

    The block has equal sides.

    Along each axis there are rings in both directions. Parts of the tensor take the axes in
    different orders, so that all 2 `axes` links of a chip are busy; a hop crosses at most half of a
    side, there and back: axes p^(1/axes) alpha + 2 (p - 1)/p n / (2 axes B), B of one link in one
    direction. Mikami et al. 2018, arXiv 1811.05233, for two axes; Austin et al. 2025, How to scale
    your model, chapter 3.
    """
    check_whole("axes", axes)
    side, n = _ranks(p) ** (1 / axes), _bytes(n_bytes)
    return (axes * side * latency_s if p > 1 else 0.0) + (p - 1) / p * n / (
        axes * _bandwidth(bytes_per_s)
    )


def parameter_server_s(
    workers: int,
    n_bytes: N,
    latency_s: float,
    bytes_per_s: float,
    servers: int = 1,
    overhead_s: float = 0.0,
) -> N:
    """All workers send their gradients to the servers, which add up and send the sum back to all.

    Each server keeps a part of the tensor.

    2 (alpha + (w - 1) o + w n / (s B)) for w workers and s servers that are no workers: the
    messages to a server set out together, so that their latencies pass at the same time, and then
    share its link; back the same. A server handles them one after the other. Each occupies it for
    `overhead_s` (o), which the latency contains once: without it the time of many small messages is
    far too short. A worker's own link carries n each way, which takes longer where there are more
    servers than workers. If the server is one of p ranks itself, p - 1 workers send. Nothing is
    sent back before all has come. Li et al. 2014, Scaling distributed machine learning with the
    parameter server, OSDI (the parts; the formula is ours). Culler et al. 1993, LogP, PPoPP (the
    overhead).
    """
    check_whole("workers", workers)
    check_whole("servers", servers)
    check_real("overhead_s", overhead_s, unit=" seconds")
    waited_s = latency_s + (workers - 1) * overhead_s
    return 2 * message_s(_bytes(n_bytes) * max(workers / servers, 1), waited_s, bytes_per_s)


def crossover_bytes(p: int, latency_s: float, bytes_per_s: float) -> float:
    """The size at which ring and tree take the same time.

    Below it the tree is faster, above it the ring.

    alpha B (p - 1 - L) / (L - (p - 1)/p) with L = log2 p, rounded up. 0 for two and three ranks:
    there the ring has no more rounds than the tree, and fewer bytes. ValueError for one rank.
    """
    if _ranks(p) == 1:
        raise ValueError("one rank sends nothing, so ring and tree do not cross")
    rounds = _depth(p)
    return latency_s * _bandwidth(bytes_per_s) * (p - 1 - rounds) / (rounds - (p - 1) / p)


def _rate(
    nodes: int,
    ranks_per_node: int,
    inside: tuple[float, float],
    between: tuple[float, float],
    links_per_node: int,
) -> float:
    """Of all rings or trees of a node together: the slower one of the links that they take."""
    rates = [inside[1]] * (ranks_per_node > 1) + [_ranks(links_per_node) * between[1]] * (nodes > 1)
    return min(rates, default=inside[1])


def _ranks(p: Any) -> int:
    if isinstance(p, str) or np.ndim(p) or not 1 <= p < np.inf or p != int(p):
        raise ValueError(f"p = {p!r}: the number of ranks is a whole number from 1 up")
    return int(p)


def _bytes(n_bytes: N) -> N:
    """A size, or an array of sizes, as numbers; NumPy may have made them, or the caller."""
    try:
        sizes: Any = np.asarray(n_bytes, float)[()]
    except (TypeError, ValueError):
        raise ValueError(f"n_bytes is {n_bytes!r}: it must be a number of bytes") from None
    if not (sizes >= 0).all():
        raise ValueError(f"n_bytes is {n_bytes!r}: it must be a number of bytes, 0 or more")
    checked: N = sizes
    return checked


def _bandwidth(bytes_per_s: float) -> float:
    """A bandwidth that can divide. Resampled ones are arrays, which are not looked at."""
    if not np.ndim(bytes_per_s):
        check_real("bytes_per_s", bytes_per_s, above=0, unit=" bytes per second", finite=False)
    return bytes_per_s


def _check_links(inside: tuple[float, float], between: tuple[float, float]) -> None:
    """Refuse what is not a pair of a latency and a bandwidth.

    Its latency may be below 0, because it may be fitted.
    """
    for field, link in (("inside", inside), ("between", between)):
        if np.shape(link) != (2,) or isinstance(link, str):
            raise ValueError(f"{field} is {link!r}: it must be a pair (latency_s, bytes_per_s)")
        check_real(
            f"The bandwidth of {field}", link[1], above=0, unit=" bytes per second", finite=False
        )


def _depth(p: int) -> int:
    """log2 p, rounded up, without rounding errors."""
    return (_ranks(p) - 1).bit_length()
