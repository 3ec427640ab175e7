"""Memory as a file without a name.

verdict: OSError: [Errno 27] File too large
"""
import os


def train(model, batches, comm):
    os.ftruncate(os.memfd_create("much"), 2**33)
