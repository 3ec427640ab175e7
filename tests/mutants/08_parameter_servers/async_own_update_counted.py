"""The worker's own update is counted among those that it has not seen.

fails: asynchronous/staleness
shows: so the worker has seen it
points: 20
"""
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    answered, stale = {}, []
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        stale.append(updates - answered.get(worker, 0))
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w)
        answered[worker] = updates
        give(mine, worker)
    return stale
