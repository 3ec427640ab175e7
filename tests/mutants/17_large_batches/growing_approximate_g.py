"""g without the -1.

fails: growing/g
shows: This is the approximation
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * images / batch


def grow(phases, batch, largest):
    larger = [min(largest, int(batch * phases[0][1] / rate + 1e-9)) for _, rate in phases]
    return [(epochs, rate * size / batch, size) for (epochs, rate), size in zip(phases, larger)]
