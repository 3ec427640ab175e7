"""The pulled variables are put into the list; the worker's own memory stays what it was.

fails: exchange/pull
shows: instead of replacing the variable with a new tensor
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
    fresh = [variable.clone() for variable in variables]
    for piece in pieces:
        dist.recv(fresh[piece.variable][piece.start:piece.stop], src=servers[piece.server])
    variables[:] = fresh
