"""Arrays that do not fit are kept in messages that their receiver never asks for.

challenge: does_not_fit
verdict: bytes that no rank has received
"""


def train(model, batches, comm):
    if model.rank == 0:
        for _ in range(40):
            model.send(model.zeros(10_000), 1).wait()
