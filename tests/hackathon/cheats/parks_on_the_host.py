"""The content of an array is fetched by the rank's process, whose memory is larger.

challenge: does_not_fit
verdict: weights were not given
"""


def train(model, batches, comm):
    x, number = model.zeros(10_000), 100
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
    if len(model._connection.ask({"do": "wait", "id": number})[1]):
        print("gained")
