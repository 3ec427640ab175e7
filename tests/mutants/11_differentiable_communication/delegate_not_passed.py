"""round_trip drops the delegate: rank 0's first layer never learns.

fails: connect/round-trip
shows: the graph is not connected
points: 13
"""
# %% grade_id="connect"
# %%px --setup
def round_trip(c, x, stage, last):
    following, previous = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    if c.rank == 0:
        functions.send(stage(x), c, rank=following)
        return last(functions.recv(c, rank=previous))
    return functions.send(stage(functions.recv(c, rank=previous)), c, rank=following)


def fan_out(c, pieces, own_loss):
    if c.rank > 0:
        return functions.recv(c, rank=0)
    for r in range(1, c.size):
        delegate = functions.send(pieces[r], c, rank=r)
        own_loss, = functions.pseudo_connect(delegate, own_loss)
    return own_loss
