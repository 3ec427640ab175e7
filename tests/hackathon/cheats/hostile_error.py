"""An error that does harm when it is told.

verdict: has ended without giving its weights
"""


class Bad(Exception):
    def __str__(self):
        raise KeyboardInterrupt


def train(model, batches, comm):
    raise Bad
