"""Arrays that do not fit are kept in broadcasts that only their root has started.

challenge: does_not_fit
verdict: is out of memory
"""


def train(model, batches, comm):
    for number in range(100, 140 if model.rank == 0 else 100):
        x = model.zeros(10_000)
        model._connection.tell(
            {
                "do": "start",
                "id": number,
                "call": "broadcast",
                "dtype": "float32",
                "array": x.number,
                "into": x.number,
                "members": [0, 1, 2, 3],
                "root": 0,
            }
        )
        x = None
    model.recv(model.zeros(1), (model.rank + 1) % 4).wait()
    print("gained")
