"""The ranks call different things.

verdict: The members of a collective do not call the same
"""
import torch
import torch.distributed as dist


def train(model, batches, comm):
    dist.all_reduce(torch.ones(3 + comm.rank()))
