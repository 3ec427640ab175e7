"""Each rank trains the whole model on a quarter of the batch, and holds a quarter of weights,
gradients and moments. A stage's weights are gathered when they are needed, twice, since its
activations are computed anew before its backward (Rajbhandari et al. 2020, ZeRO, stage 3).
"""

STEPS, RATE = 70, 0.01


def train(model, batches, comm):
    ranks, stages = model.ranks, range(len(model.sizes))
    count = [size // ranks for size in model.sizes]
    mine = [
        model.weights(stage, model.rank * count[stage], (model.rank + 1) * count[stage])
        for stage in stages
    ]
    moments = [(model.zeros(count[stage]), model.zeros(count[stage])) for stage in stages]
    rows = model.rank * model.batch_size // ranks, (model.rank + 1) * model.batch_size // ranks

    def gathered(stage):
        whole = model.zeros(model.sizes[stage])
        model.all_gather(mine[stage], whole).wait()
        return whole

    for step, batch in zip(range(1, STEPS + 1), batches):
        came = [None]
        for stage in stages[:-1]:
            out, _ = model.forward(stage, gathered(stage), batch, rows, came[-1], keep=False)
            came.append(out)
        above = None
        for stage in reversed(stages):
            _, kept = model.forward(stage, gathered(stage), batch, rows, came.pop())
            whole = model.zeros(model.sizes[stage])
            above = model.backward(kept, whole, above)
            slopes = model.zeros(count[stage])
            model.reduce_scatter(whole, slopes).wait()
            model.scale(slopes, 1 / ranks)
            model.adam(mine[stage], slopes, *moments[stage], step, RATE)
    for stage in stages:
        model.give(stage, mine[stage], model.rank * count[stage])
