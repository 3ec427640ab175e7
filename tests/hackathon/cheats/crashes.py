"""A rank crashes in the library of C.

verdict: crashed (segmentation fault)
"""

import ctypes


def train(model, batches, comm):
    ctypes.string_at(0)
