"""Arrays that do not fit are kept in collectives of a group of one, which cost neither memory nor
time.

challenge: does_not_fit
verdict: is out of memory
"""


def train(model, batches, comm):
    for number in range(100, 140):
        x = model.zeros(10_000)
        model._connection.tell(
            {
                "do": "start",
                "id": number,
                "call": "all_reduce",
                "dtype": "float32",
                "array": x.number,
                "into": x.number,
                "members": [model.rank],
            }
        )
        x = None
    print("gained")
