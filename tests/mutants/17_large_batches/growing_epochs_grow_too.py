"""The epochs of a phase are multiplied as the batch is: as many steps as before.

fails: growing/noise, growing/fewest
shows: with the epochs that were given
points: 16
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    sizes = [min(largest, int(batch * phases[0][1] / rate + 1e-9)) for _, rate in phases]
    return [(epochs * size / batch, rate * size / batch, size) for (epochs, rate), size in zip(phases, sizes)]
