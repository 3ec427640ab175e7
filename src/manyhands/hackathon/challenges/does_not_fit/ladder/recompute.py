"""Four parts of a batch follow each other through the stages, so that all ranks work.

Their activations would not fit: a rank keeps only what came in, and computes a part forward once
more before its backward (Chen et al. 2016, Training deep nets with sublinear memory cost; Huang et
al. 2019, GPipe).
"""

STEPS, RATE, ROWS = 70, 0.01, 4


def train(model, batches, comm):
    stage = model.rank
    weights = model.weights(stage)
    slopes, first, second = (model.zeros(len(weights)) for _ in range(3))
    size, parts = ROWS * model.activation, model.batch_size // ROWS
    for step, batch in zip(range(1, STEPS + 1), batches):
        came = []
        for part in range(parts):
            rows = part * ROWS, (part + 1) * ROWS
            came.append(receive(model, size, stage - 1) if stage > 0 else None)
            if stage < model.ranks - 1:
                out, _ = model.forward(stage, weights, batch, rows, came[-1], keep=False)
                model.send(out, stage + 1).wait()
        for part in range(parts):
            rows, x = (part * ROWS, (part + 1) * ROWS), came.pop(0)
            _, kept = model.forward(stage, weights, batch, rows, x)
            above = receive(model, size, stage + 1) if stage < model.ranks - 1 else None
            below = model.backward(kept, slopes, above)
            if stage > 0:
                model.send(below, stage - 1).wait()
        model.scale(slopes, 1 / parts)
        model.adam(weights, slopes, first, second, step, RATE)
        model.scale(slopes, 0)
    model.give(stage, weights)


def receive(model, size, peer):
    x = model.zeros(size)
    model.recv(x, peer).wait()
    return x
