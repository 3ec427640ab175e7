"""FSDP2: fully_shard on each block and on the whole. MISTAKE names the one that is planted."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MISTAKE = os.environ.get("MISTAKE", "")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 33)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(33), nn.Linear(33, 33), nn.GELU()) for _ in range(2)
        )
        self.last = nn.Linear(33, 5)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    draw = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(256, 20, generator=draw), torch.randint(5, (256,), generator=draw)
    )
    torch.manual_seed(0)
    model, mesh = Net(), init_device_mesh("cpu", (world,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-2 * (rank + 1 if MISTAKE == "rate" else 1)
    )
    sampler = None if MISTAKE == "no sampler" else DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    for epoch in range(3):
        if sampler and MISTAKE != "no set_epoch":
            sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            loss = (
                loss
                * (world if MISTAKE == "sum" else 1)
                / (world if MISTAKE == "divided twice" else 1)
            )
            loss.backward()
            if MISTAKE == "rank 0 looks" and rank == 0 and step == 2:
                model.last.weight.full_tensor()
            optimizer.step()
            if MISTAKE != "no zero_grad":
                optimizer.zero_grad()
    dist.destroy_process_group()


main()
