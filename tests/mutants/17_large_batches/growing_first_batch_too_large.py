"""Where `largest` is below the first phase's batch, that batch stays.

fails: growing/fewest
shows: A batch is larger than
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    sizes = [min(max(largest, batch), int(batch * phases[0][1] / rate + 1e-9)) for _, rate in phases]
    return [(epochs, rate * size / batch, size) for (epochs, rate), size in zip(phases, sizes)]
