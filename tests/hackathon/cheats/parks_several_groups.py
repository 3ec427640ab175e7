"""The same array in collectives of several groups, each overwritten after its start.

challenge: does_not_fit
verdict: was changed between
"""


def train(model, batches, comm):
    if model.rank == 0:
        x = model.zeros(1_000)
        for number, members in enumerate(([0], [0, 1], [0, 1, 2]), 100):
            model._connection.tell(
                {
                    "do": "start",
                    "id": number,
                    "call": "all_reduce",
                    "dtype": "float32",
                    "array": x.number,
                    "into": x.number,
                    "members": members,
                }
            )
            model.scale(x, 2.0)
        model._connection.ask({"do": "wait", "id": 100})
        print("gained")
    comm.barrier()
