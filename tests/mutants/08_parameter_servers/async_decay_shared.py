"""Each push has only its worker's part of the decay.

fails: asynchronous/values
shows: The decay is divided by the number of workers
points: 19
"""
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    answered, stale = {}, []
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        stale.append(updates - answered.get(worker, 0))
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay / len(set(schedule)) * w)
        answered[worker] = updates + 1
        give(mine, worker)
    return stale
