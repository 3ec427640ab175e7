"""One message a step, of 16 bits: the second rung.

fails: entry/fifth, entry/tenth
shows: this rung is at
points: 18
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(model, batches, comm):
    for _, batch in zip(range(150), batches):
        slopes = torch.autograd.grad(model(batch), list(model.parameters()))
        mean = parameters_to_vector(slopes).div(comm.size()).half()
        dist.all_reduce(mean, group=comm)
        weights = parameters_to_vector(model.parameters()).detach()
        vector_to_parameters(weights - 0.3 * mean.float(), model.parameters())
