"""zero_grad stands before the loop.

fails: mended/equal
shows: the gradients are never reset
points: 20
"""
# %% grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    optimizer.zero_grad()
    for batch in batches:
        model(batch).backward()
        slopes = parameters_to_vector([weight.grad for weight in weights])
        dist.all_reduce(slopes, op=dist.ReduceOp.AVG, group=comm)
        vector_to_parameters(slopes, [weight.grad for weight in weights])
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
