"""One message a step, of half-precision numbers."""

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE = 150, 0.3


def train(model, batches, comm):
    for _, batch in zip(range(STEPS), batches):
        slopes = torch.autograd.grad(model(batch), list(model.parameters()))
        # divided before the sum: it must not overflow
        mean = parameters_to_vector(slopes).div(comm.size()).half()
        dist.all_reduce(mean, group=comm)
        weights = parameters_to_vector(model.parameters()).detach()
        vector_to_parameters(weights - RATE * mean.float(), model.parameters())
