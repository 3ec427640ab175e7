"""Staleness is returned by worker, in a dict.

fails: asynchronous/staleness
shows: must return a list of whole numbers
points: 20
runs: asynchronous
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
        answered[worker] = updates + 1
        give(mine, worker)
    return dict(zip(schedule, stale))
