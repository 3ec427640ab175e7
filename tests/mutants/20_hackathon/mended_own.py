"""Nothing is averaged, and in the end the weights are.

fails: mended/equal, mended/lean
shows: These are not the weights that a single process computes
points: 19
"""
# %% grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).backward()
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
    mean = parameters_to_vector(weights).detach()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG, group=comm)
    vector_to_parameters(mean, weights)
