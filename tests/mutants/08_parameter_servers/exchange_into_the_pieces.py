"""take receives into the server's pieces.

fails: exchange/push, exchange/pull
shows: shares the memory of the server's own pieces
points: 18
runs: exchange
"""
# %% grade_id="exchange"
# %%px --setup
def push(gradients, count, pieces, servers):
    for server in servers:
        dist.send(torch.tensor([count]), dst=server)
    for piece in pieces:
        dist.send(gradients[piece.variable][piece.start:piece.stop], dst=servers[piece.server])


def take(mine, worker):
    count = torch.empty(1, dtype=torch.int64)
    dist.recv(count, src=worker)
    gradients = mine
    for gradient in gradients:
        dist.recv(gradient, src=worker)
    return gradients, count.item()


def give(mine, worker):
    for piece in mine:
        dist.send(piece, dst=worker)


def pull(variables, pieces, servers):
    for piece in pieces:
        dist.recv(variables[piece.variable][piece.start:piece.stop], src=servers[piece.server])
