"""The largest variable first, to the servers that have most room, cut only where it must be; one message for each push and pull."""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    room = [link_bytes // workers] * servers
    pieces = []
    for variable in sorted(range(len(shapes)), key=lambda v: -8 * prod(shapes[v][1:])):  # long rows first: short ones fill the gaps
        row_bytes, start = 8 * prod(shapes[variable][1:]), 0
        for server in sorted(range(servers), key=lambda s: -room[s]):
            stop = min(shapes[variable][0], start + room[server] // row_bytes)
            if stop > start:
                pieces.append(Piece(variable, start, stop, server))
                room[server] -= (stop - start) * row_bytes
                start = stop
    return sorted(pieces)
# %% grade_id="exchange"
# %%px --setup
def push(gradients, count, pieces, servers):
    works = []
    for number, server in enumerate(servers):
        rows = [gradients[v][a:b].flatten() for v, a, b, s in pieces if s == number]
        works.append(dist.isend(torch.cat([torch.tensor([count]).double(), *rows]), dst=server))
    for work in works:
        work.wait()


def take(mine, worker):
    message = torch.empty(1 + sum(w.numel() for w in mine), dtype=torch.float64)
    dist.recv(message, src=worker)
    count, *rows = message.split([1, *(w.numel() for w in mine)])
    return [row.view_as(w) for row, w in zip(rows, mine)], int(count)


def give(mine, worker):
    dist.send(torch.cat([w.flatten() for w in mine]), dst=worker)


def pull(variables, pieces, servers):
    for number, server in enumerate(servers):
        own = [variables[v][a:b] for v, a, b, s in pieces if s == number]
        message = torch.empty(sum(w.numel() for w in own), dtype=torch.float64)
        dist.recv(message, src=server)
        for w, row in zip(own, message.split([w.numel() for w in own])):
            w.copy_(row.view_as(w))
# %% grade_id="step"
# %%px --setup
def synchronous_step(mine, workers, rate, decay):
    pushes = [take(mine, worker) for worker in workers]
    rows = sum(count for _, count in pushes)
    for i, w in enumerate(mine):
        w.mul_(1 - rate * decay).sub_(sum(gradients[i] for gradients, _ in pushes), alpha=rate / rows)
    for worker in reversed(workers):
        give(mine, worker)
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    stale, since = [], dict.fromkeys(schedule, 0)  # updates that each worker has not seen
    for worker in schedule:
        gradients, count = take(mine, worker)
        stale.append(since[worker])
        for w, gradient in zip(mine, gradients):
            w.mul_(1 - rate * decay).sub_(gradient, alpha=rate / count)
        since = {other: 0 if other == worker else behind + 1 for other, behind in since.items()}
        give(mine, worker)
    return torch.tensor(stale)
# %% grade_id="servers"
# %%px --setup
from math import ceil

def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    carry_s = n_bytes / bytes_per_s
    if 2 * (latency_s + carry_s) > limit_s:
        return None
    return max(1, ceil(workers * carry_s / (limit_s / 2 - latency_s) - 1e-9))
