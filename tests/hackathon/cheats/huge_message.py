"""A message of 4 GiB, announced.

verdict: A message may have at most 4 MiB
"""

import struct


def train(model, batches, comm):
    batches._connection.socket.sendall(struct.pack("!II", 2, 2**32 - 1) + b"{}")
    next(batches)
