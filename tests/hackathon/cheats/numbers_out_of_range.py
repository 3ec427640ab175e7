"""An operation of a rank that is not there.

verdict: never send
"""


def train(model, batches, comm):
    batches._connection.tell(
        {"do": "start", "id": 1, "call": "send", "dtype": "uint8", "peer": -1, "tag": 0}
    )
    next(batches)
