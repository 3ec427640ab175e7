"""Each worker is answered as soon as it has pushed, with what is there by then.

fails: step/answer
shows: got an answer before all workers had pushed
points: 20
runs: step
"""
# %% grade_id="step"
# %%px --setup
def synchronous_step(mine, workers, rate, decay):
    before, sums, rows = [w.clone() for w in mine], [torch.zeros_like(w) for w in mine], 0
    for worker in workers:
        gradients, count = take(mine, worker)
        rows += count
        for w, old, total, gradient in zip(mine, before, sums, gradients):
            total += gradient
            w.copy_(old - rate * (total / rows + decay * old))
        give(mine, worker)
