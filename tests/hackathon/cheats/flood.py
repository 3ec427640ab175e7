"""Messages that nobody takes, to fill the judge's memory.

verdict: MiB under way that no rank receives
"""

import torch
import torch.distributed as dist


def train(model, batches, comm):
    for _ in range(1000):
        dist.isend(torch.zeros(2**20 - 1), (comm.rank() + 1) % 4)
    next(batches)
