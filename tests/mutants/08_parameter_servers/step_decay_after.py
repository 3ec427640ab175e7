"""The decay acts on weights that the gradient has changed already.

fails: step/update, step/answer, train/weights
shows: The decay acts on weights that the gradient has changed already
points: 17
"""
# %% grade_id="step"
# %%px
def synchronous_step(mine, workers, rate, decay):
    total, rows = [torch.zeros_like(w) for w in mine], 0
    for worker in workers:
        gradients, count = take(mine, worker)
        for t, g in zip(total, gradients):
            t += g
        rows += count
    for w, t in zip(mine, total):
        w -= rate * t / rows
        w -= rate * decay * w
    for worker in workers:
        give(mine, worker)
