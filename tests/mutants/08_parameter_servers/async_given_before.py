"""The worker is answered before the update.

fails: asynchronous/values
shows: answered before the update
points: 19
"""
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    answered, stale = {}, []
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        give(mine, worker)
        stale.append(updates - answered.get(worker, 0))
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w)
        answered[worker] = updates + 1
    return stale
