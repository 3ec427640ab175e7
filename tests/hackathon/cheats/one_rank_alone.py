"""Rank 0 trains alone, and gives its weights to all.

verdict: The target was not reached
"""

import torch
import torch.distributed as dist


def train(model, batches, comm):
    if comm.rank() == 0:
        optimizer = torch.optim.SGD(model.parameters(), 0.3)
        for _, batch in zip(range(150), batches):
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
    for weight in model.parameters():
        dist.broadcast(weight.data, 0)
