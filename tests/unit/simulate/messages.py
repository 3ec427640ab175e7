"""The truth for `manyhands.simulate.clocks`: every message of an all-reduce, played one by one.

A program is a list of rounds for each rank; a round lists the messages that the rank takes part in, (other rank, bytes,
"send" or "receive"). A message begins when both ranks have come to its round, and a rank's round ends with its last message.
"""


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
                waiting[rank] = [(name(rank, other, kind), n_bytes) for other, n_bytes, kind in program[places[rank]]]
                for message, _ in waiting[rank]:
                    came.setdefault(message, {})[rank] = clocks[rank]
                going = True
            if all(len(came[message]) == 2 for message, _ in waiting[rank]):
                ends = [max(came[message].values()) + latency_s + n / bytes_per_s for message, n in waiting[rank]]
                clocks[rank] = max([clocks[rank], *ends])
                waiting[rank], places[rank], going = None, places[rank] + 1, True
    assert places == [len(program) for program in programs], "these programs wait for each other"
    return clocks


def ring(p, n_bytes, rounds):
    one = [[((rank + 1) % p, n_bytes / p, "send"), ((rank - 1) % p, n_bytes / p, "receive")] for rank in range(p)]
    return [[one[rank]] * rounds for rank in range(p)]


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
    halvings = [(1 << i, n_bytes / 2**(i + 1)) for i in range(whole.bit_length() - 1)]
    for away, size in halvings + halvings[::-1]:
        for rank in range(whole):
            programs[rank].append([(rank ^ away, size, "send"), (rank ^ away, size, "receive")])
    fold(up=False)
    return programs


def parameter_server(clocks, n_bytes, link, servers):
    """The workers' times, message by message; a server has one link, which takes a message after the other."""
    latency_s, bytes_per_s = link
    part_s = n_bytes / servers / bytes_per_s
    order = sorted(range(len(clocks)), key=lambda worker: clocks[worker])
    free_s, own_s = [0.0] * servers, {}
    for worker in order:
        for server in range(servers):  # its own link sends to all of them at once, each at a share of the rate
            begin = max(clocks[worker] + latency_s, free_s[server])
            free_s[server] = begin + part_s
        own_s[worker] = clocks[worker] + latency_s + n_bytes / bytes_per_s
    summed = max([*free_s, *own_s.values()])
    return [summed + latency_s + max((order.index(worker) + 1) * part_s, n_bytes / bytes_per_s)
            for worker in range(len(clocks))]
