"""The sign of the step is wrong.

fails: step/update, step/answer
shows: The sign is wrong
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
        w += rate * (total / rows + decay * w)
    for worker in workers:
        give(mine, worker)
