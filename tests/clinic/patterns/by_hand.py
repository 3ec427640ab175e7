"""Data parallelism by hand: all_reduce after backward. MISTAKE names the one that is planted."""

import os

import torch
import torch.distributed as dist
from torch import nn

MISTAKE = os.environ.get("MISTAKE", "")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    draw = torch.Generator().manual_seed(1)
    x, y = torch.randn(480, 20, generator=draw), torch.randint(5, (480,), generator=draw)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 5))
    if MISTAKE != "no broadcast":
        for parameter in model.parameters():
            dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.Generator().manual_seed(2)
    for step in range(20):
        batch = torch.randperm(len(x), generator=order)[:32]
        if MISTAKE == "uneven":
            mine = batch[:20] if rank == 0 else batch[20:][rank - 1 :: world - 1]
        elif MISTAKE == "same rows":
            mine = batch[:8]
        else:
            mine = batch[rank::world]
        loss = nn.functional.cross_entropy(model(x[mine]), y[mine])
        if MISTAKE != "no zero_grad":
            optimizer.zero_grad()
        loss.backward()
        if MISTAKE == "clip first":
            nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        for place, parameter in enumerate(model.parameters()):
            if MISTAKE == "last layer" and place >= 2:
                continue
            if MISTAKE == "early" and rank == world - 1 and step == 2:
                continue
            dist.all_reduce(parameter.grad)
            if MISTAKE != "sum":
                parameter.grad /= world
        optimizer.step()
    dist.destroy_process_group()


main()
