"""The phases that were given are used up.

fails: growing/g, growing/noise, growing/fewest
shows: grow has changed `phases`
points: 15
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    first, grown = phases[0][1], []
    while phases:
        epochs, rate = phases.pop(0)
        larger = min(largest, int(batch * first / rate + 1e-9))
        grown.append((epochs, rate * larger / batch, larger))
    return grown
