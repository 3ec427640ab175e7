"""The backward of one forward, twice.

challenge: does_not_fit
verdict: never send
"""


def train(model, batches, comm):
    weights, slopes = model.weights(0), model.zeros(model.sizes[0])
    _, kept = model.forward(0, weights, next(batches), (0, 1))
    number, above = kept.number, model.zeros(model.activation)
    model.backward(kept, slopes, above)
    kept.number = number
    model.backward(kept, slopes, above)
