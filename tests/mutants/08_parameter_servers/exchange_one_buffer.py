"""take returns the same memory for every worker.

fails: exchange/push
shows: take returns the same memory each time
points: 19
runs: exchange
"""
# %% grade_id="exchange"
# %%px --setup
def push(gradients, count, pieces, servers):
    for server in servers:
        dist.send(torch.tensor([count]), dst=server)
    for piece in pieces:
        dist.send(gradients[piece.variable][piece.start:piece.stop], dst=servers[piece.server])


_kept = []

def take(mine, worker):
    count = torch.empty(1, dtype=torch.int64)
    dist.recv(count, src=worker)
    if len(_kept) != len(mine) or any(a.shape != b.shape for a, b in zip(_kept, mine)):
        _kept[:] = [torch.empty_like(piece) for piece in mine]
    gradients = _kept
    for gradient in gradients:
        dist.recv(gradient, src=worker)
    return gradients, count.item()


def give(mine, worker):
    for piece in mine:
        dist.send(piece, dst=worker)


def pull(variables, pieces, servers):
    for piece in pieces:
        dist.recv(variables[piece.variable][piece.start:piece.stop], src=servers[piece.server])
