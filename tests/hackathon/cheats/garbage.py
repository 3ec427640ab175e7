"""Bytes that are no message.

verdict: A message to the judge was not JSON
"""

import struct


def train(model, batches, comm):
    batches._connection.socket.sendall(struct.pack("!II", 3, 0) + b"\xff[{")
    next(batches)
