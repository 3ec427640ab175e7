"""The batch is cut by int alone: of a whole quotient that floats show a little below, one image is lost.

fails: growing/fewest
shows: one image fewer than fit
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)

def grow(phases, batch, largest):
    first = phases[0][1]
    found = []
    for epochs, rate in phases:
        b = min(largest, int(batch * first / rate))
        found.append((epochs, rate * b / batch, b))
    return found
