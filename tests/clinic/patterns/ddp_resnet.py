"""A small ResNet under DistributedDataParallel. MISTAKE names the one that is planted."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MISTAKE = os.environ.get("MISTAKE", "")


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2)
        )
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


class ResNet(nn.Module):
    def __init__(self, channels=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, channels, 3, padding=1), nn.ReLU())
        self.blocks = nn.Sequential(Block(channels), Block(channels))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    draw = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(256, 1, 8, 8, generator=draw), torch.randint(10, (256,), generator=draw)
    )
    torch.manual_seed(0)
    model = ResNet()
    ddp = DDP(model, forward_sync_buffers=MISTAKE != "buffers")
    optimizer = torch.optim.SGD(
        ddp.parameters(), lr=0.05 * (rank + 1 if MISTAKE == "rate" else 1), momentum=0.9
    )
    sampler = None if MISTAKE == "no sampler" else DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    for epoch in range(3):
        if sampler and MISTAKE != "no set_epoch":
            sampler.set_epoch(epoch)
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(
                (model if MISTAKE == "not through ddp" else ddp)(x), y
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and step == 2 and MISTAKE == "rank 0 reduces":
                dist.all_reduce(loss.detach())
    dist.destroy_process_group()


main()
