"""A rank leaves in the middle.

verdict: Rank 3 has ended without giving its weights
"""

import os

import torch
import torch.distributed as dist


def train(model, batches, comm):
    if comm.rank() == 3:
        os._exit(0)
    dist.all_reduce(torch.ones(3))
