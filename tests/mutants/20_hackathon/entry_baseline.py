"""The challenge's baseline, as it is.

fails: entry/faster, entry/half, entry/fifth, entry/tenth
shows: this rung is at
points: 16
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for _, batch in zip(range(150), batches):
        optimizer.zero_grad()
        model(batch).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG, group=comm)
        optimizer.step()
