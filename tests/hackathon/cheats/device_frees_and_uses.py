"""An array that was freed, and so does not count, is used on.

challenge: does_not_fit
verdict: never send
"""


def train(model, batches, comm):
    x = model.zeros(100)
    number = x.number
    x = None
    model._do("scale", number, 1.0)
