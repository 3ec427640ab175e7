"""Rank 0 trains and the others get its weights: it sees too little of most classes.

fails: entry/right, entry/faster, entry/half, entry/fifth, entry/tenth
shows: The target was not reached
points: 14
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for _, batch in zip(range(150), batches):
        if comm.rank() > 0:
            break
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
    weights = parameters_to_vector(model.parameters()).detach()
    dist.broadcast(weights, 0, group=comm)
    vector_to_parameters(weights, model.parameters())
