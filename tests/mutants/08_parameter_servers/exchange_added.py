"""pull adds what comes to the variables.

fails: exchange/pull
shows: It must replace them instead
points: 20
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
    gradients = [torch.empty_like(piece) for piece in mine]
    for gradient in gradients:
        dist.recv(gradient, src=worker)
    return gradients, count.item()


def give(mine, worker):
    for piece in mine:
        dist.send(piece, dst=worker)


def pull(variables, pieces, servers):
    for piece in pieces:
        target = variables[piece.variable][piece.start:piece.stop]
        got = torch.empty_like(target)
        dist.recv(got, src=servers[piece.server])
        target += got
