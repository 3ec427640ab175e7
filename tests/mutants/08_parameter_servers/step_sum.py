"""The sum of the gradients is not divided.

fails: step/update, step/answer
shows: added up but not divided
points: 18
runs: step
"""
# %% grade_id="step"
# %%px --setup
def synchronous_step(mine, workers, rate, decay):
    sums, rows = [torch.zeros_like(w) for w in mine], 0
    for worker in workers:
        gradients, count = take(mine, worker)
        rows += count
        for total, gradient in zip(sums, gradients):
            total += gradient
    for w, total in zip(mine, sums):
        w -= rate * (total + decay * w)
    for worker in workers:
        give(mine, worker)
