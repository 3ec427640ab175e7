"""Hugging Face's Accelerate. MISTAKE names the one that is planted."""

import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MISTAKE = os.environ.get("MISTAKE", "")


def main():
    accelerator = Accelerator(cpu=True)
    rank, world = accelerator.process_index, accelerator.num_processes
    draw = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(256, 20, generator=draw), torch.randint(5, (256,), generator=draw)
    )
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 5))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-2 * (rank + 1 if MISTAKE == "rate" else 1)
    )
    loader, bare = DataLoader(data, batch_size=8, shuffle=True), model
    if MISTAKE == "no sampler":
        model, optimizer = accelerator.prepare(model, optimizer)
    elif MISTAKE == "not prepared":
        optimizer, loader = accelerator.prepare(optimizer, loader)
    else:
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(3):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(
                (bare if MISTAKE == "not through model" else model)(x), y
            )
            loss = loss / (world if MISTAKE == "divided twice" else 1)
            accelerator.backward(loss)
            if MISTAKE == "rank 0 gathers" and accelerator.is_main_process and step == 2:
                accelerator.gather(loss.detach())
            optimizer.step()
            if MISTAKE != "no zero_grad":
                optimizer.zero_grad()


main()
