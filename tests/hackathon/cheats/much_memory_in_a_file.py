"""Memory as a file without a name.

verdict: PermissionError: [Errno 1] Operation not permitted
"""

import os


def train(model, batches, comm):
    os.ftruncate(os.memfd_create("much"), 2**33)
