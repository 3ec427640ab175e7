"""The gradients are added up, the counts are not.

fails: step/update, step/answer
shows: only the count of the last worker
shows: and so is the answer
points: 18
runs: step
"""
# %% grade_id="step"
# %%px --setup
def synchronous_step(mine, workers, rate, decay):
    sums = [torch.zeros_like(w) for w in mine]
    for worker in workers:
        gradients, rows = take(mine, worker)
        for total, gradient in zip(sums, gradients):
            total += gradient
    for w, total in zip(mine, sums):
        w -= rate * (total / rows + decay * w)
    for worker in workers:
        give(mine, worker)
