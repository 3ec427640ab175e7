"""Other weights for the backward than for the forward.

challenge: does_not_fit
verdict: changed between forward and backward
"""


def train(model, batches, comm):
    weights, x = model.weights(1), model.zeros(model.activation)
    _, kept = model.forward(1, weights, next(batches), (0, 1), x)
    model.scale(weights, 2.0)
    model.backward(kept, model.zeros(len(weights)), x)
