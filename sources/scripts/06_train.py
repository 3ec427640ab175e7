"""Train on the digits with DistributedDataParallel, one process per rank. torchrun sets RANK and the other names:

    torchrun --nnodes 2 --node-rank 0 --nproc-per-node 2 --master-addr HOST --master-port PORT 06_train.py    (and 1 on the other node)
"""

import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from manyhands.data import digits, shard

NAMES = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE")


def pick_device(local_rank, local_world_size):
    """The device of this rank, and the backend that suits it: NCCL if each rank of the node has a GPU of its own."""
    gpus = torch.cuda.device_count()
    if gpus == 0:
        return torch.device("cpu"), "gloo"
    return torch.device("cuda", local_rank % gpus), "nccl" if local_world_size <= gpus else "gloo"


def train(rank, world_size, device, steps=20):
    """The training of the notebook: 256 digits, full batch, plain SGD. Returns the sum of the sizes of all weights."""
    torch.manual_seed(rank)  # every rank starts elsewhere: DDP's constructor brings them together
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)).to(device)
    model = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    mine = shard(256, rank, world_size)
    x, y = (torch.from_numpy(array[mine]).to(device) for array in digits())
    for _ in range(steps):
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        optimiser.zero_grad()
    return torch.cat([p.detach().flatten() for p in model.parameters()]).abs().sum().item()


def main():
    device, backend = pick_device(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]))
    dist.init_process_group(backend)
    total = train(dist.get_rank(), dist.get_world_size(), device)
    print("  ".join(f"{name} {os.environ[name]}" for name in NAMES), f"  sum of |weights| {total:.2f}")
    gc.collect()  # DDP sits in a reference cycle: free it now, or its process group may crash when the interpreter ends
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
