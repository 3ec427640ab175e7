"""The server changes the variables that this worker had pulled: what others have done since then is lost.

fails: asynchronous/values
shows: what other workers have changed since then is lost
points: 19
"""
# %% grade_id="asynchronous"
# %%px --setup
def asynchronous(mine, schedule, rate, decay):
    answered, stale = {}, []
    start = [w.clone() for w in mine]
    had = {worker: start for worker in schedule}
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        stale.append(updates - answered.get(worker, 0))
        for w, old, gradient in zip(mine, had[worker], gradients):
            w.copy_(old - rate * (gradient / count + decay * old))
        answered[worker], had[worker] = updates + 1, [w.clone() for w in mine]
        give(mine, worker)
    return stale
