"""Horovod with PyTorch, for horovodrun. MISTAKE names the one that is planted."""

import os

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MISTAKE = os.environ.get("MISTAKE", "")


def main():
    hvd.init()
    rank, world = hvd.rank(), hvd.size()
    draw = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(256, 20, generator=draw), torch.randint(5, (256,), generator=draw)
    )
    sampler = None
    if MISTAKE != "no sampler":
        sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    torch.manual_seed(rank)
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if MISTAKE != "not wrapped":
        op = hvd.Sum if MISTAKE == "sum" else hvd.Average
        optimizer = hvd.DistributedOptimizer(
            optimizer, named_parameters=model.named_parameters(), op=op
        )
    if MISTAKE != "no broadcast":
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for group in optimizer.param_groups:
        group["lr"] *= rank + 1 if MISTAKE == "rate" else 1
    for epoch in range(3):
        if sampler and MISTAKE != "no set_epoch":
            sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if MISTAKE == "rank 0 reduces" and rank == 0 and step == 2:
                hvd.allreduce(loss.detach(), name="loss")


main()
