"""Only some weights are given.

challenge: does_not_fit
verdict: were not given
"""


def train(model, batches, comm):
    model.give(0, model.weights(0))
