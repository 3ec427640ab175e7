"""The calls of the other challenges, whose gradients have another price.

challenge: does_not_fit
verdict: never send
"""


def train(model, batches, comm):
    model._connection.ask({"do": "gradient", "batch": 0})
