"""More memory than a rank may have.

verdict: entry.py, line 10: RuntimeError
"""

import torch


def train(model, batches, comm):
    torch.zeros(2**30)
