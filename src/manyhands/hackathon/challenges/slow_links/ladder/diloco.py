"""Local SGD, and the way that the mean has gone since the last averaging is a gradient for an outer
optimizer with Nesterov's momentum (Douillard et al. 2023, DiLoCo).
"""

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE, ALONE, OUTER_RATE, MOMENTUM = 160, 0.3, 16, 0.7, 0.8


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    start = parameters_to_vector(model.parameters()).detach()
    outer = torch.nn.Parameter(start.clone())
    outer_optimizer = torch.optim.SGD([outer], OUTER_RATE, momentum=MOMENTUM, nesterov=True)
    for step, batch in zip(range(1, STEPS + 1), batches):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        if step % ALONE == 0:
            way = outer.detach() - parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(way, op=dist.ReduceOp.AVG, group=comm)
            outer.grad = way
            outer_optimizer.step()
            vector_to_parameters(outer.detach().clone(), model.parameters())
