"""Weights that are no numbers.

challenge: does_not_fit
verdict: were not given, or are not numbers
"""


def train(model, batches, comm):
    for stage, size in enumerate(model.sizes):
        weights = model.weights(stage)
        model.scale(weights, float("nan"))
        model.give(stage, weights)
