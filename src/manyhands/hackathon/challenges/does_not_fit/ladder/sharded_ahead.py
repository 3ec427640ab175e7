"""As `sharded.py`, and the weights of the next stage are gathered, and the gradients of the last
one scattered, while a stage computes (Zhao et al. 2023, PyTorch FSDP).
"""

STEPS, RATE = 70, 0.01


def train(model, batches, comm):
    ranks, stages = model.ranks, list(range(len(model.sizes)))
    count = [size // ranks for size in model.sizes]
    mine = [
        model.weights(stage, model.rank * count[stage], (model.rank + 1) * count[stage])
        for stage in stages
    ]
    moments = [(model.zeros(count[stage]), model.zeros(count[stage])) for stage in stages]
    rows = model.rank * model.batch_size // ranks, (model.rank + 1) * model.batch_size // ranks

    def gather(stage):
        whole = model.zeros(model.sizes[stage])
        return whole, model.all_gather(mine[stage], whole)

    def update(stage, step, slopes, work):
        work.wait()
        model.scale(slopes, 1 / ranks)
        model.adam(mine[stage], slopes, *moments[stage], step, RATE)

    for step, batch in zip(range(1, STEPS + 1), batches):
        ways = [*stages[:-1], *reversed(stages)]  # forward without the last stage, then back
        came, above, late, ahead = [None], None, None, gather(ways[0])
        for place, stage in enumerate(ways):
            (weights, work), ahead = ahead, None
            work.wait()
            if place + 1 < len(ways):
                ahead = gather(ways[place + 1])
            if place < len(stages) - 1:
                came.append(model.forward(stage, weights, batch, rows, came[-1], keep=False)[0])
                continue
            _, kept = model.forward(stage, weights, batch, rows, came.pop())
            whole, slopes = model.zeros(model.sizes[stage]), model.zeros(count[stage])
            above = model.backward(kept, whole, above)
            if late:
                update(*late)
            late = stage, step, slopes, model.reduce_scatter(whole, slopes)
            kept = whole = weights = None
        update(*late)
    for stage in stages:
        model.give(stage, mine[stage], model.rank * count[stage])
