"""The number of the update is returned, not the difference.

fails: asynchronous/staleness
shows: This is the number of the update
points: 20
"""
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    answered, stale = {}, []
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        stale.append(updates)
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w)
        answered[worker] = updates + 1
        give(mine, worker)
    return stale
