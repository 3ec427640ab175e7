"""All gradients are averaged in each step, which is correct but slow on slow links."""

import torch
import torch.distributed as dist

STEPS, RATE = 150, 0.3


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _, batch in zip(range(STEPS), batches):
        optimizer.zero_grad()
        model(batch).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG, group=comm)
        optimizer.step()
