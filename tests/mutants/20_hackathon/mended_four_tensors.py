"""Right, with four messages a step.

fails: mended/lean
shows: Put the gradients into one tensor
points: 21
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
        for weight in weights:
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG, group=comm)
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
