"""Each rank holds one stage of the model.

The two halves of a batch go through all stages and back one after the other, and three ranks wait
while one works.
"""

STEPS, RATE, ROWS = 70, 0.01, 8


def train(model, batches, comm):
    stage = model.rank
    weights = model.weights(stage)
    slopes, first, second = (model.zeros(len(weights)) for _ in range(3))
    for step, batch in zip(range(1, STEPS + 1), batches):
        for begin in range(0, model.batch_size, ROWS):
            through(model, stage, weights, slopes, batch, (begin, begin + ROWS))
        model.scale(slopes, ROWS / model.batch_size)  # the loss is a mean over the rows of a call
        model.adam(weights, slopes, first, second, step, RATE)
        model.scale(slopes, 0)
    model.give(stage, weights)


def through(model, stage, weights, slopes, batch, rows):
    x = above = None
    size = (rows[1] - rows[0]) * model.activation
    if stage > 0:
        x = model.zeros(size)
        model.recv(x, stage - 1).wait()
    out, kept = model.forward(stage, weights, batch, rows, x)
    if stage < model.ranks - 1:
        model.send(out, stage + 1).wait()
        above = model.zeros(size)
        model.recv(above, stage + 1).wait()
    below = model.backward(kept, slopes, above)
    if stage > 0:
        model.send(below, stage - 1).wait()
