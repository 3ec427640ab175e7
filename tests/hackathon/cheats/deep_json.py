"""Brackets in brackets.

verdict: A message to the judge was not JSON
"""

import struct


def train(model, batches, comm):
    batches._connection.socket.sendall(struct.pack("!II", 4000, 0) + b"[" * 4000)
    next(batches)
