"""Compute without asking anybody.

verdict: used up its processor time
"""


def train(model, batches, comm):
    while True:
        pass
