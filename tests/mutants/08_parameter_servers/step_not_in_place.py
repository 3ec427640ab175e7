"""The list gets new tensors; the server's memory stays what it was.

fails: step/update
shows: Change each piece in place
points: 19
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
    mine[:] = [w - rate * (total / rows + decay * w) for w, total in zip(mine, sums)]
    for worker in workers:
        give(mine, worker)
