"""The ranks call different things.

verdict: The members of a collective make different calls
"""

import torch
import torch.distributed as dist


def train(model, batches, comm):
    dist.all_reduce(torch.ones(3 + comm.rank()))
