"""Arrays are named by receives that no send ever matches, and by nothing else.

challenge: does_not_fit
verdict: is out of memory
"""


def train(model, batches, comm):
    for _ in range(40):
        model.recv(model.zeros(10_000), (model.rank + 1) % 4)._into = None
    print("gained")
