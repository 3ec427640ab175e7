"""Eight small parts of a batch, and a backward as soon as one can be done: stage s keeps the
activations of 4 - s parts at most, and nothing is computed twice (Narayanan et al. 2019, PipeDream;
its schedule with a flush).
"""

STEPS, RATE, ROWS = 70, 0.01, 2


def train(model, batches, comm):
    stage, last = model.rank, model.ranks - 1
    weights = model.weights(stage)
    slopes, first, second = (model.zeros(len(weights)) for _ in range(3))
    size, parts = ROWS * model.activation, model.batch_size // ROWS
    for step, batch in zip(range(1, STEPS + 1), batches):
        under_way = []

        def forward(part):
            x = receive(model, size, stage - 1) if stage > 0 else None
            out, kept = model.forward(stage, weights, batch, (part * ROWS, (part + 1) * ROWS), x)  # noqa: B023 - called in this turn of the loop only
            under_way.append(kept)  # noqa: B023 - called in this turn of the loop only
            if stage < last:
                model.send(out, stage + 1).wait()

        def backward():
            above = receive(model, size, stage + 1) if stage < last else None
            below = model.backward(under_way.pop(0), slopes, above)  # noqa: B023 - called in this turn of the loop only
            if stage > 0:
                model.send(below, stage - 1).wait()

        for part in range(parts):
            forward(part)
            if part >= last - stage:
                backward()
        while under_way:
            backward()
        model.scale(slopes, 1 / parts)
        model.adam(weights, slopes, first, second, step, RATE)
        model.scale(slopes, 0)
    model.give(stage, weights)


def receive(model, size, peer):
    x = model.zeros(size)
    model.recv(x, peer).wait()
    return x
