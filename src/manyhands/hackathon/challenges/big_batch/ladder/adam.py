"""Fourteen batches of each rank for an update, so quiet a gradient that Adam's steps can be
large.
"""

import torch
import torch.distributed as dist

UPDATES, BATCHES, RATE = 28, 14, 0.02


def train(model, batches, comm):
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        for _, batch in zip(range(BATCHES), batches):
            model(batch).div(BATCHES).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG, group=comm)
        optimizer.step()
