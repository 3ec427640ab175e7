"""A training for torchrun, as somebody has brought it to the hackathon: it runs, and its loss falls.

    torchrun --standalone --nproc-per-node 2 20_train.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BATCH, EPOCHS, RATE = 16, 3, 0.05


def images():
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(256, 64, generator=draw)
    return TensorDataset(x, (x @ torch.randn(64, 10, generator=draw)).argmax(1))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    data = images()
    loader = DataLoader(data, BATCH, shuffle=True)
    for epoch in range(EPOCHS):
        total = torch.zeros(1)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            (loss / world).backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            total += mean / world
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / len(loader):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
