"""The truth for `manyhands.simulate.clocks`: every message of an all-reduce, played one by one.

A program is a list of rounds for each rank; a round lists the messages that the rank takes part in,
(other rank, bytes, "send" or "receive"). A message begins when both ranks have come to its round,
and a rank's round ends with its last message.
"""

import heapq

from manyhands.ledger import models


def play(programs, clocks, link):
    """The times at which the ranks have ended their programs."""
    latency_s, bytes_per_s = link
    clocks, places = list(clocks), [0] * len(programs)
    came = {}  # (sender, receiver, number of the message between them) -> {rank: time}
    counts = {}

    def name(rank, other, kind):
        pair = (rank, other) if kind == "send" else (other, rank)
        counts[rank, pair] = counts.get((rank, pair), -1) + 1
        return (*pair, counts[rank, pair])

    waiting = [None] * len(programs)
    going = True
    while going:
        going = False
        for rank, program in enumerate(programs):
            if places[rank] == len(program):
                continue
            if waiting[rank] is None:
                waiting[rank] = [
                    (name(rank, other, kind), n_bytes)
                    for other, n_bytes, kind in program[places[rank]]
                ]
                for message, _ in waiting[rank]:
                    came.setdefault(message, {})[rank] = clocks[rank]
                going = True
            if all(len(came[message]) == 2 for message, _ in waiting[rank]):
                ends = [
                    max(came[message].values()) + latency_s + n / bytes_per_s
                    for message, n in waiting[rank]
                ]
                clocks[rank] = max([clocks[rank], *ends])
                waiting[rank], places[rank], going = None, places[rank] + 1, True
    assert places == [len(program) for program in programs], "these programs wait for each other"
    return clocks


def ring(p, n_bytes, rounds):
    round_of = [
        [((rank + 1) % p, n_bytes / p, "send"), ((rank - 1) % p, n_bytes / p, "receive")]
        for rank in range(p)
    ]
    return [[round_of[rank]] * rounds for rank in range(p)]


def tree(p, n_bytes):
    programs, aways = [[] for _ in range(p)], [1 << i for i in range((p - 1).bit_length())]
    for up, away in [(True, a) for a in aways] + [(False, a) for a in aways[::-1]]:
        for low in range(0, p - away, 2 * away):
            programs[low].append([(low + away, n_bytes, "receive" if up else "send")])
            programs[low + away].append([(low, n_bytes, "send" if up else "receive")])
    return programs


def halving_doubling(p, n_bytes):
    programs, whole = [[] for _ in range(p)], 1 << (p.bit_length() - 1)

    def fold(up):
        for low in range(p - whole):
            programs[low].append([(low + whole, n_bytes, "receive" if up else "send")])
            programs[low + whole].append([(low, n_bytes, "send" if up else "receive")])

    fold(up=True)
    halvings = [(1 << i, n_bytes / 2 ** (i + 1)) for i in range(whole.bit_length() - 1)]
    for away, size in halvings + halvings[::-1]:
        for rank in range(whole):
            programs[rank].append([(rank ^ away, size, "send"), (rank ^ away, size, "receive")])
    fold(up=False)
    return programs


def of_the_ledger(call, p, n_bytes):
    """What the ledger takes a collective of `torch.distributed` to consist of.

    `n_bytes` is the whole tensor.
    """
    given, taken = {
        "all_gather_single": (n_bytes // p, n_bytes),
        "reduce_scatter_single": (n_bytes, n_bytes // p),
    }.get(call, (n_bytes, n_bytes))
    programs = []
    for rank in range(p):
        steps = models.steps(call, p, rank, [given], [taken])
        rounds = [
            [
                (s.peer, s.bytes, "send" if s.kind == "sent" else "receive")
                for s in steps
                if s.step == k
            ]
            for k in range(models.length(call, p))
        ]
        programs.append([round_ for round_ in rounds if round_])
    return programs


def all_to_all(p, n_bytes):
    """In round k each rank sends to the one k places further on."""
    return [
        [
            [((rank + k) % p, n_bytes / p, "send"), ((rank - k) % p, n_bytes / p, "receive")]
            for k in range(1, p)
        ]
        for rank in range(p)
    ]


def chain(p, n_bytes, pieces):
    """The messages of a broadcast along a chain, for `stream`."""
    return [
        (rank, rank + 1, n_bytes / pieces, [piece * (p - 1) + rank - 1] if rank else [])
        for piece in range(pieces)
        for rank in range(p - 1)
    ]


def busy_server(workers, n_bytes, link, overhead_s):
    """Seconds until all workers have the sum from one server.

    It handles each message for `overhead_s` and receives its bytes after that. A latency contains
    the overhead of one message.
    """
    latency_s, bytes_per_s = link
    free_s = latency_s - overhead_s
    for _ in range(workers):
        free_s += overhead_s + n_bytes / bytes_per_s
    sent_s = free_s
    for _ in range(workers):
        sent_s += overhead_s + n_bytes / bytes_per_s
    return sent_s - overhead_s + latency_s


def parameter_server(clocks, n_bytes, link, servers):
    """The workers' times, message by message.

    A server has one link, which takes a message after the other.
    """
    latency_s, bytes_per_s = link
    part_s = n_bytes / servers / bytes_per_s
    order = sorted(range(len(clocks)), key=lambda worker: clocks[worker])
    free_s, own_s = [0.0] * servers, {}
    for worker in order:
        # its own link sends to all of them at once, each at a share of the rate
        for server in range(servers):
            begin = max(clocks[worker] + latency_s, free_s[server])
            free_s[server] = begin + part_s
        own_s[worker] = clocks[worker] + latency_s + n_bytes / bytes_per_s
    summed = max([*free_s, *own_s.values()])
    return [
        summed + latency_s + max((order.index(worker) + 1) * part_s, n_bytes / bytes_per_s)
        for worker in range(len(clocks))
    ]


def stream(messages, link_of):
    """When the last of `messages` has arrived, on links of several kinds.

    A link is busy only while a message's bytes pass: its latency goes by while the next message is
    on its way. A message is (sender, receiver, bytes, needs): it may begin when the messages
    `needs`, by their places in the list, have arrived at its sender. `link_of(sender, receiver)` =
    (name of what carries it, latency_s, bytes_per_s); messages for one name wait for each other,
    the first come first.
    """
    asked = {place: len(needs) for place, (*_, needs) in enumerate(messages)}
    next_ones = {}
    for place, (*_, needs) in enumerate(messages):
        for need in needs:
            next_ones.setdefault(need, []).append(place)
    ready = [(0.0, place) for place, left in asked.items() if not left]
    heapq.heapify(ready)
    free, arrived = {}, {}
    while ready:
        now, place = heapq.heappop(ready)
        sender, receiver, n_bytes, _ = messages[place]
        name, latency_s, bytes_per_s = link_of(sender, receiver)
        if free.get(name, 0.0) > now:
            heapq.heappush(ready, (free[name], place))
            continue
        free[name] = now + n_bytes / bytes_per_s
        arrived[place] = free[name] + latency_s
        for other in next_ones.get(place, ()):
            asked[other] -= 1
            if not asked[other]:
                heapq.heappush(ready, (max(arrived[need] for need in messages[other][3]), other))
    assert len(arrived) == len(messages), "these messages wait for each other"
    return max(arrived.values(), default=0.0)


def ring_of_nodes(p, n_bytes):
    """The messages of an all-reduce along one ring.

    In each round a rank sends on what has come in the round before.
    """
    return [
        (rank, (rank + 1) % p, n_bytes / p, [(k - 1) * p + (rank - 1) % p] if k else [])
        for k in range(2 * (p - 1))
        for rank in range(p)
    ]


def double_tree(nodes, g, n_bytes, slices):
    """The messages of two trees of nodes, with a chain of the `g` ranks in each node.

    Each slice goes by itself. In a node, rank 0 is nearest to the network. Tree 0 numbers the nodes
    as they are, tree 1 from the other end: where the number of nodes is even, a node that is inside
    one of them is a leaf of the other.
    """
    messages = []

    def add(*message):
        messages.append(message)
        return len(messages) - 1

    size = n_bytes / 2 / slices

    def along_a_tree(mirrored):
        parent, children = _tree_of(nodes)
        up, down = {}, {}

        def rank(node, place):
            return (nodes - 1 - node if mirrored else node) * g + place

        def reduce(node):
            needs = [reduce(child) for child in children[node]]
            chain = []
            for place in range(g - 1, 0, -1):
                chain = [add(rank(node, place), rank(node, place - 1), size, chain)]
            up[node] = needs + chain
            return (
                add(rank(node, 0), rank(parent[node], 0), size, up[node])
                if node in parent
                else None
            )

        def spread(node, came):
            for child in children[node]:
                down[child] = add(rank(node, 0), rank(child, 0), size, came)
            chain = came
            for place in range(1, g):
                chain = [add(rank(node, place - 1), rank(node, place), size, chain)]
            for child in children[node]:
                spread(child, [down[child]])

        root = next(node for node in range(nodes) if node not in parent)
        reduce(root)
        spread(root, up[root])

    for _ in range(slices):
        for mirrored in (False, True):
            along_a_tree(mirrored)
    return messages


def _tree_of(nodes):
    """parent, children of a binary tree whose leaves are every other node.

    Node i hangs below i with its lowest bit moved up, as in NCCL; node 0 is the root, with one
    child.
    """
    parent, children = {}, {node: [] for node in range(nodes)}
    top = 1
    while top * 2 < nodes:
        top *= 2
    for node in range(1, nodes):
        low = node & -node
        above = (node ^ low) | (low << 1)
        if above >= nodes:
            above = node ^ low
        parent[node] = above
        children[above].append(node)
    return parent, children


def in_switch(g, n_bytes, slices):
    """The messages of an all-reduce of `g` ranks by a switch, which is rank g.

    It reads each rank's part of a chunk, hands the sum to the chunk's own rank, and copies what
    that rank sends back to all.
    """
    messages = []
    for _ in range(slices):
        for owner in range(g):
            size, last = n_bytes / g / slices, len(messages)
            messages += [(rank, g, size, []) for rank in range(g)]
            messages += [
                (g, owner, size, list(range(last, last + g))),
                (owner, g, size, [last + g]),
            ]
            messages += [(g, rank, size, [last + g + 1]) for rank in range(g)]
    return messages
