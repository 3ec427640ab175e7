"""The batch is rounded to the nearest whole number: where that is up, the rate is above the first one.

fails: growing/fewest
shows: Round batches down to whole numbers.
points: 17
"""
# %% grade_id="growing"
def sgd_noise(rate, momentum, images, batch):
    return rate / (1 - momentum) * (images / batch - 1)

def grow(phases, batch, largest):
    first = phases[0][1]
    found = []
    for epochs, rate in phases:
        b = min(largest, round(batch * first / rate))
        found.append((epochs, rate * b / batch, b))
    return found
