"""Where the batch is at its largest, the rest of the drop is forgotten.

fails: growing/noise
shows: The rest of the drop must go into the rate
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)


def grow(phases, batch, largest):
    larger = [int(batch * phases[0][1] / rate + 1e-9) for _, rate in phases]
    return [(epochs, rate * size / batch, size) if size <= largest else (epochs, phases[0][1], largest) for (epochs, rate), size in zip(phases, larger)]
