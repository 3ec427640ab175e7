"""Rank 0 leaves an all-reduce out.

fails: entry/right, entry/faster, entry/half, entry/fifth, entry/tenth
shows: All ranks wait, and none of them can continue
points: 14
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(model, batches, comm):
    for batch in batches:
        model(batch).backward()
        if comm.rank() > 0:
            dist.all_reduce(torch.zeros(3), group=comm)
