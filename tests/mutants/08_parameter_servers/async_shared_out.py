"""Each push makes a part of a step, as in the tutorial.

fails: asynchronous/values
shows: as in the tutorial, where a push was a part of the mean
points: 19
runs: asynchronous
"""
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    answered, stale, workers = {}, [], len(set(schedule))
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        stale.append(updates - answered.get(worker, 0))
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w) / workers
        answered[worker] = updates + 1
        give(mine, worker)
    return stale
