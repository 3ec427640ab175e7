"""The alpha-beta model of an all-reduce: along a ring, along a tree, by halving and doubling, in two levels,
through parameter servers.

A message of n bytes takes `latency_s + n_bytes / bytes_per_s` (alpha + n beta). What the models assume:

* all links are alike, and full duplex: a rank sends and receives at the same time, each at the full rate;
* messages between different pairs of ranks do not disturb each other;
* a rank takes part in one message in each direction at a time; only a parameter server has many under way at once;
* adding numbers up costs nothing, and all ranks begin at the same moment.

Only `hierarchical_s` knows two kinds of links, inside a node and between nodes. `p` is the number of ranks,
`n_bytes` the size of the tensor, a number or an array. All functions return seconds, in the shape of `n_bytes`; with
one rank there is nothing to send. p < 1 is a ValueError.

Hockney 1994, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel Computing 20(3): the model of
a message. Thakur, Rabenseifner, Gropp 2005, Optimization of collective communication operations in MPICH, Int. J. High
Perform. Comput. Appl. 19(1): of collectives.
"""

import numpy as np


def message_s(n_bytes, latency_s, bytes_per_s):
    """One message from one rank to another."""
    return latency_s + np.asarray(n_bytes, float)[()] / bytes_per_s


def ring_s(p, n_bytes, latency_s, bytes_per_s):
    """Reduce-scatter and all-gather along a ring: 2 (p - 1) rounds, a p-th of the tensor in each.

    2 (p - 1) (alpha + n / (p B)). Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, J. Parallel Distrib. Comput. 69(2).
    """
    return 2 * (_ranks(p) - 1) * message_s(np.asarray(n_bytes, float) / p, latency_s, bytes_per_s)


def tree_s(p, n_bytes, latency_s, bytes_per_s):
    """A sum along a binomial tree to one rank, then a broadcast along the same tree:
    2 log2 p rounds, log2 p rounded up, the whole tensor in each.

    2 ceil(log2 p) (alpha + n / B). Thakur, Rabenseifner and Gropp 2005, section 4. Where p is no power of two, a sum
    can take less than that: some messages to one rank overlap.
    """
    return 2 * _depth(p) * message_s(n_bytes, latency_s, bytes_per_s)


def halving_doubling_s(p, n_bytes, latency_s, bytes_per_s):
    """Recursive halving (a reduce-scatter), then recursive doubling (an all-gather):
    2 log2 p rounds, of n/2, n/4, ..., n/p bytes, and back.

    2 log2 p alpha + 2 (p - 1)/p n / B where p is a power of two: the rounds of a tree and the bytes of a ring. Else the
    ranks above the largest power of two q each give their tensor to one below before, and get the sum afterwards:
    2 (alpha + n / B) more, with q in place of p. (There are other ways; gloo's makes blocks of 4 and 1 ranks of 5.) In
    each round all ranks send at once, to partners 1, 2, ..., q/2 places away: a network in which those messages share
    links is slower. Thakur, Rabenseifner and Gropp 2005, section 4; Rabenseifner 2004, Optimization of collective
    reduction operations, ICCS.
    """
    halvings = _ranks(p).bit_length() - 1
    whole = 2**halvings
    inside_s = 2 * halvings * latency_s + 2 * (whole - 1) / whole * np.asarray(n_bytes, float)[()] / bytes_per_s
    return inside_s + (2 * message_s(n_bytes, latency_s, bytes_per_s) if p > whole else 0)


def hierarchical_s(nodes, ranks_per_node, n_bytes, inside, between, links_per_node=1):
    """An all-reduce in two levels: a reduce-scatter inside each node, an all-reduce of each part between the nodes,
    an all-gather inside each node.

    `inside` and `between` are links, pairs (latency_s, bytes_per_s). With g ranks on each of m nodes: 2 (g - 1) rounds
    of n/g bytes inside, and between the nodes g rings at once, each of 2 (m - 1) rounds of n/(g m) bytes, which share
    the node's `links_per_node` links:
    2 (g - 1) (alpha + n / (g B)) inside + 2 (m - 1) (alpha + n / (m l B)) between,
    for l links, of which no more than g are used.
    Mikami et al. 2018, Massively distributed SGD, arXiv 1811.05233 (a torus of rings; the formula is ours).
    """
    shared = np.asarray(n_bytes, float)[()] / min(_ranks(links_per_node), _ranks(ranks_per_node))
    return ring_s(ranks_per_node, n_bytes, *inside) + ring_s(nodes, shared, *between)


def parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers=1, overhead_s=0.0):
    """All workers send their gradients to the servers, which add up and send the sum back to all;
    each server keeps a part of the tensor.

    2 (alpha + (w - 1) o + w n / (s B)) for w workers and s servers that are no workers: the messages to a server set
    out together, so that their latencies pass at the same time, and then share its link; back the same. A server
    handles them one after the other. Each occupies it for `overhead_s` (o), which the latency contains once: without
    it the time of many small messages is far too short. A worker's own link carries n each way, which takes longer
    where there are more servers than workers. If the server is one of p ranks itself, p - 1 workers send. Nothing is
    sent back before all has come. Li et al. 2014, Scaling distributed machine learning with the parameter server, OSDI
    (the parts; the formula is ours). Culler et al. 1993, LogP, PPoPP (the overhead).
    """
    if workers < 1 or servers < 1:
        raise ValueError(f"{workers} workers and {servers} servers: there must be one of each at least")
    waited_s = latency_s + (workers - 1) * overhead_s
    return 2 * message_s(np.asarray(n_bytes, float) * max(workers / servers, 1), waited_s, bytes_per_s)


def crossover_bytes(p, latency_s, bytes_per_s):
    """The size at which ring and tree take the same time: below it the tree is faster, above it the ring.

    alpha B (p - 1 - L) / (L - (p - 1)/p) with L = log2 p, rounded up. 0 for two and three ranks: there the ring has no
    more rounds than the tree, and fewer bytes. ValueError for one rank.
    """
    if _ranks(p) == 1:
        raise ValueError("one rank sends nothing: ring and tree do not cross")
    rounds = _depth(p)
    return latency_s * bytes_per_s * (p - 1 - rounds) / (rounds - (p - 1) / p)


def _ranks(p):
    if p < 1 or p != int(p):
        raise ValueError(f"p = {p}: the number of ranks is a whole number from 1 up")
    return int(p)


def _depth(p):
    """log2 p, rounded up, without rounding errors."""
    return (_ranks(p) - 1).bit_length()
