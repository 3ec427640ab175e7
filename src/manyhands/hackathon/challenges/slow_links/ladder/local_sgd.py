"""Each rank trains alone for some steps, then the weights are averaged (Stich 2019, Local SGD
converges fast and communicates little). More steps alone: fewer messages, and ranks that have
drifted further apart.
"""

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE, ALONE = 240, 0.3, 16


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for step, batch in zip(range(1, STEPS + 1), batches):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        if step % ALONE == 0:
            weights = parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(weights, op=dist.ReduceOp.AVG, group=comm)
            vector_to_parameters(weights, model.parameters())
