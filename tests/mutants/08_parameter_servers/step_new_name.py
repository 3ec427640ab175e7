"""w = w - ... gives the new tensor a name, and to nobody else.

fails: step/update, step/answer
shows: w = w - ... makes a new tensor
shows: and so is the answer
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
        w = w - rate * (total / rows + decay * w)
    for worker in workers:
        give(mine, worker)
