"""An asynchronous server: one update for each push.

fails: step/update, step/answer
shows: as on an asynchronous server
points: 18
runs: step
"""
# %% grade_id="step"
# %%px --setup
def synchronous_step(mine, workers, rate, decay):
    for worker in workers:
        gradients, count = take(mine, worker)
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w)
    for worker in workers:
        give(mine, worker)
