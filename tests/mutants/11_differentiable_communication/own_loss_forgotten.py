"""fan_out joins the delegates to each other, and returns them without the loss.

fails: connect/fan-out
shows: The value is wrong
points: 13
"""
# %% grade_id="connect"
# %%px --setup
def round_trip(c, x, stage, last):
    following, previous = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    if c.rank == 0:
        delegate = functions.send(stage(x), c, rank=following)
        return last(functions.recv(c, rank=previous, delegate_variable=delegate))
    return functions.send(stage(functions.recv(c, rank=previous)), c, rank=following)


def fan_out(c, pieces, own_loss):
    if c.rank > 0:
        return functions.recv(c, rank=0)
    delegates = [functions.send(pieces[r], c, rank=r) for r in range(1, c.size)]
    return sum(delegates)
