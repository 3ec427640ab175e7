"""Eight batches of each rank for an update, and Nesterov's momentum."""

import torch
import torch.distributed as dist

UPDATES, BATCHES, RATE, MOMENTUM = 32, 8, 0.5, 0.8


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM, nesterov=True)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        for _, batch in zip(range(BATCHES), batches):
            model(batch).div(BATCHES).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG, group=comm)
        optimizer.step()
