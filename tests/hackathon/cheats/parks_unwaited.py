"""Arrays that do not fit are kept in collectives that all ranks have started and none waits for.

challenge: does_not_fit
verdict: is out of memory
"""


def train(model, batches, comm):
    under_way = []
    for _ in range(40):
        x = model.zeros(10_000)
        under_way.append(model.all_reduce(x))
        under_way[-1]._into = x = None
    print("gained")
