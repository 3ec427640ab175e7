"""Arrays that do not fit wait on the way until their receiver asks for them.

challenge: does_not_fit
verdict: with what it had sent before its receiver asked for it
"""


def train(model, batches, comm):
    if model.rank == 0:
        for _ in range(40):
            model.send(model.zeros(10_000), 1).wait()
    if model.rank == 1:
        weights = model.weights(0)
        for _ in range(20):
            model.forward(0, weights, next(batches), (0, 16), keep=False)
        for _ in range(40):
            model.recv(model.zeros(10_000), 0).wait()
