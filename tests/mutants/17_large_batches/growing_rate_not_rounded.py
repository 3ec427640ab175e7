"""The batch is rounded down, and the rate does not follow it.

fails: growing/noise
shows: The batch is rounded, but the rate is still the rate of the first phase.
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    larger = [int(batch * phases[0][1] / rate + 1e-9) for _, rate in phases]
    return [(epochs, phases[0][1], size) if size <= largest else (epochs, rate * largest / batch, largest) for (epochs, rate), size in zip(phases, larger)]
