"""The asynchronous server: an update and an answer for each push.

fails: step/update, step/answer
shows: A synchronous server waits for all pushes
shows: This worker was answered when only
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
        give(mine, worker)
