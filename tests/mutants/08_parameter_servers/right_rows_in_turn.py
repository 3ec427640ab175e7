"""Each variable's rows go to the servers by how much room they have left; started receives; counts after the gradients."""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    pieces, kept = [], [0] * servers
    for variable, shape in enumerate(shapes):
        rows = [0] * servers
        for _ in range(shape[0]):  # row by row to the server that has least, then neighbours together
            server = kept.index(min(kept))
            kept[server] += 8 * prod(shape[1:])
            rows[server] += 1
        start = 0
        for server, count in enumerate(rows):
            if count:
                pieces.append((variable, start, start + count, server))
            start += count
    return [Piece(*piece) for piece in pieces]
# %% grade_id="exchange"
# %%px --setup
def push(gradients, count, pieces, servers):
    works = [dist.isend(gradients[p.variable][p.start:p.stop], dst=servers[p.server]) for p in pieces]
    counts = [dist.isend(torch.tensor([float(count)]), dst=server) for server in servers]
    for work in works + counts:
        work.wait()


def take(mine, worker):
    gradients, count = [torch.zeros_like(w) for w in mine], torch.zeros(1)
    works = [dist.irecv(room, src=worker) for room in (*gradients, count)]
    for work in works:
        work.wait()
    return gradients, round(count.item())


def give(mine, worker):
    for work in [dist.isend(w, dst=worker) for w in mine]:
        work.wait()


def pull(variables, pieces, servers):
    works = [dist.irecv(variables[p.variable][p.start:p.stop], src=servers[p.server]) for p in pieces]
    for work in works:
        work.wait()
