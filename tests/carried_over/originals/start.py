"""What the ChainerMN programs share: numbers to begin with, and a report of what came out."""

import json
import zlib

import numpy as np


def numbers(name, *shape):
    """The same numbers for the same name in every program, on every rank."""
    phase = zlib.crc32(name.encode()) % 1000
    return (0.5 * np.sin(1.7 * np.arange(np.prod(shape)) + phase)).astype(np.float32).reshape(shape)


def fill(model):
    """Give a model its first weights, by the names that PyTorch has for them."""
    for path, parameter in model.namedparams():
        *place, last = path.strip("/").split("/")
        if last[1:].isdigit():  # of NStepLSTM: layer/w0 .. w7, b0 .. b7; PyTorch keeps the four gates of a kind together
            gate, side = int(last[1:]) % 4, "ih" if int(last[1:]) < 4 else "hh"
            kind = "weight" if last[0] == "w" else "bias"
            shape = (4 * parameter.shape[0], *parameter.shape[1:])
            whole = numbers(".".join([*place[:-1], f"{kind}_{side}_l{place[-1]}"]), *shape)
            parameter.array[...] = whole.reshape(4, *parameter.shape)[gate]
        else:
            parameter.array[...] = numbers(".".join([*place, {"W": "weight", "b": "bias"}[last]]), *parameter.shape)


def report(comm, **found):
    """Rank 0 prints what each rank has found, as one line of JSON."""
    everyones = comm.gather_obj({name: np.asarray(getattr(value, "array", value)).tolist() for name, value in found.items()})
    if comm.rank == 0:
        print(json.dumps(everyones))
