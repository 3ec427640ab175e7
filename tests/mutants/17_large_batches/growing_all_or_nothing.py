"""If the whole drop does not fit, the rate takes all of it.

fails: growing/fewest
shows: the rate falls while the batch could still grow
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    grown, size, now = [], batch, phases[0][1]
    for epochs, rate in phases:
        whole = int(batch * phases[0][1] / rate)
        grown.append((epochs, rate * whole / batch, whole) if whole <= largest else (epochs, rate, batch))
    return grown
