"""N / B is cut to a whole number, and so are the epochs.

fails: growing/g, growing/noise, growing/fewest
shows: This is not g for N =
shows: with the epochs that were given
points: 15
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images // batch - 1)


def grow(phases, batch, largest):
    sizes = [min(largest, int(batch * phases[0][1] / rate + 1e-9)) for _, rate in phases]
    return [(int(epochs), rate * size / batch, size) for (epochs, rate), size in zip(phases, sizes)]
