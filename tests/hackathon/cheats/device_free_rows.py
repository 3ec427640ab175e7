"""A forward of no rows costs a call only.

challenge: does_not_fit
verdict: called forward without any rows
"""


def train(model, batches, comm):
    model.forward(0, model.weights(0), next(batches), (4, 4))
