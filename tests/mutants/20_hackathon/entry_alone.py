"""Nobody sends anything.

fails: entry/right, entry/faster, entry/half, entry/fifth, entry/tenth
shows: The ranks end with different weights
points: 14
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for step, batch in zip(range(1, 160 + 1), batches):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        if False:
            weights = parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(weights, op=dist.ReduceOp.AVG, group=comm)
            vector_to_parameters(weights, model.parameters())
