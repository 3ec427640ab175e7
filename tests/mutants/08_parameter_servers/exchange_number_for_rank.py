"""The number of the server is taken for its rank: messages go to whom nobody expects them from.

fails: exchange/push, exchange/pull
shows: piece.server is the number of a server
points: 18
runs: exchange
"""
# %% grade_id="exchange"
# %%px --setup
def push(gradients, count, pieces, servers):
    for server in servers:
        dist.send(torch.tensor([count]), dst=server)
    for piece in pieces:
        dist.send(gradients[piece.variable][piece.start:piece.stop], dst=piece.server)


def take(mine, worker):
    count = torch.empty(1, dtype=torch.int64)
    dist.recv(count, src=worker)
    gradients = [torch.empty_like(piece) for piece in mine]
    for gradient in gradients:
        dist.recv(gradient, src=worker)
    return gradients, count.item()


def give(mine, worker):
    for piece in mine:
        dist.send(piece, dst=worker)


def pull(variables, pieces, servers):
    for piece in pieces:
        dist.recv(variables[piece.variable][piece.start:piece.stop], src=servers[piece.server])
