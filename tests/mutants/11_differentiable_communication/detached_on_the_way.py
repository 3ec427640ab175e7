"""The ranks on the way detach what they receive: no gradient goes back from them.

fails: connect/round-trip
shows: nothing returned to rank 0's send. On ranks 1-3, backward does not lead
points: 13
"""
# %% grade_id="connect"
# %%px --setup
def round_trip(c, x, stage, last):
    following, previous = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    if c.rank == 0:
        delegate = functions.send(stage(x), c, rank=following)
        return last(functions.recv(c, rank=previous, delegate_variable=delegate))
    return functions.send(stage(functions.recv(c, rank=previous).detach()), c, rank=following)


def fan_out(c, pieces, own_loss):
    if c.rank > 0:
        return functions.recv(c, rank=0)
    for r in range(1, c.size):
        delegate = functions.send(pieces[r], c, rank=r)
        own_loss, = functions.pseudo_connect(delegate, own_loss)
    return own_loss
