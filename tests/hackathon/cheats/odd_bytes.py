"""Seven bytes of float32, for the judge to stumble over.

verdict: never send
"""


def train(model, batches, comm):
    batches._connection.tell(
        {"do": "start", "id": 1, "call": "all_reduce", "dtype": "float32", "members": [0, 1, 2, 3]},
        b"1234567",
    )
    next(batches)
