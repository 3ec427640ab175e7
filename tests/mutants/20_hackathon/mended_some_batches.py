"""Six steps, and more batches than that.

fails: mended/together, mended/equal
shows: gradients were asked for. Take one for each batch, and use all
points: 19
"""
# %% grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for _, batch in zip(range(6), batches):
        optimizer.zero_grad()
        model(batch).backward()
        slopes = parameters_to_vector([weight.grad for weight in weights])
        dist.all_reduce(slopes, op=dist.ReduceOp.AVG, group=comm)
        vector_to_parameters(slopes, [weight.grad for weight in weights])
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
