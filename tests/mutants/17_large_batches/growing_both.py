"""The batch grows, and the rate falls as well.

fails: growing/noise
shows: the noise falls twice
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    return [(epochs, rate, min(largest, int(batch * phases[0][1] / rate + 1e-9))) for epochs, rate in phases]
