"""The largest batch is not looked at.

fails: growing/fewest
shows: A batch is larger than
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    larger = [int(batch * phases[0][1] / rate) for _, rate in phases]
    return [(epochs, rate * size / batch, size) for (epochs, rate), size in zip(phases, larger)]
