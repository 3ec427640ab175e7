"""Train on the digits with DistributedDataParallel, as a job does. On each node, N = 0 and 1 (or see 06_train.sbatch):

    torchrun --nnodes 2 --node-rank N --nproc-per-node 2 --master-addr HOST --master-port PORT 06_train.py --checkpoint FILE
"""

import argparse
import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from manyhands.data import digits

NAMES, BATCH = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE"), 64


def join(local_rank, local_world_size, **meeting):
    """Take this rank's device and meet the others, by NCCL if each rank of the node has a GPU of its own. Returns the device."""
    gpus = torch.cuda.device_count()
    device = torch.device("cuda", local_rank % gpus) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)  # before the first NCCL call: objects travel through the current device, barriers through device_id
    own = 0 < local_world_size <= gpus
    dist.init_process_group("nccl" if own else "gloo", device_id=device if own else None, **meeting)
    return device


def train(device, epochs=5, checkpoint=None, workers=0, bf16=False):
    """Batches of 64 of 256 digits, a share of each for every rank. Returns the sum of |weights|, and the epoch it began with."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # every rank starts elsewhere: DDP's constructor brings them together
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)).to(device)
    model = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimiser, first = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), 0
    if checkpoint and os.path.exists(checkpoint):  # on a disk that all nodes share
        saved = torch.load(checkpoint, map_location=device)
        model.module.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        first = saved["epochs"]
    data = TensorDataset(*(torch.from_numpy(array[:256]) for array in digits()))
    sampler = DistributedSampler(data)  # shuffles, and knows rank and world size
    loader = DataLoader(data, BATCH // world_size, sampler=sampler, num_workers=workers, pin_memory=device.type == "cuda", persistent_workers=workers > 0)
    for epoch in range(first, epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)  # after the average: the same norm on all ranks
            optimiser.step()
            optimiser.zero_grad()
        if checkpoint and rank == 0:  # .module: the names are those of the model without DDP
            torch.save({"model": model.module.state_dict(), "optimiser": optimiser.state_dict(), "epochs": epoch + 1}, f"{checkpoint}.new")
            os.replace(f"{checkpoint}.new", checkpoint)  # a job that is ended here leaves the old file whole
    return torch.cat([p.detach().flatten() for p in model.parameters()]).abs().sum().item(), first


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--checkpoint")
    options.add_argument("--workers", type=int, default=0)
    options.add_argument("--bf16", action="store_true")
    device = join(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]))
    total, first = train(device, **vars(options.parse_args()))
    print("  ".join(f"{name} {os.environ[name]}" for name in NAMES), f"  from epoch {first}: sum of |weights| {total:.2f}")
    gc.collect()  # DDP sits in a reference cycle: free it now, or its process group may crash when the interpreter ends
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
