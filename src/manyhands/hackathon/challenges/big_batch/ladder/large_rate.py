"""Eight batches of each rank for an update, and a rate that is larger for it (Goyal et al.
2017).
"""

import torch
import torch.distributed as dist

UPDATES, BATCHES, RATE = 50, 8, 2.0


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        for _, batch in zip(range(BATCHES), batches):
            model(batch).div(BATCHES).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG, group=comm)
        optimizer.step()
