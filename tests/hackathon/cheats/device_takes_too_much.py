"""More memory than there is.

challenge: does_not_fit
verdict: out of memory
"""


def train(model, batches, comm):
    model.zeros(model.sizes[0] * 20)
