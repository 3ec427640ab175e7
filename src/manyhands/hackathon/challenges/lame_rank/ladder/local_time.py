"""Each rank trains alone for the same time, instead of the same number of steps, so no rank waits.

A rank that has done more steps weighs more in the average (Wang et al. 2020, Tackling the objective
inconsistency problem, weigh them otherwise).
"""

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

ROUNDS, ROUND_S, RATE = 12, 0.15, 0.3


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(ROUNDS):
        until_s, steps = comm.clock_s() + ROUND_S, 0
        while comm.clock_s() < until_s:
            optimizer.zero_grad()
            model(next(batches)).backward()
            optimizer.step()
            steps += 1
        total = torch.cat(
            [
                steps * parameters_to_vector(model.parameters()).detach(),
                torch.tensor([float(steps)]),
            ]
        )
        dist.all_reduce(total, group=comm)
        vector_to_parameters(total[:-1] / total[-1], model.parameters())
