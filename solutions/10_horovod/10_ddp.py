"""Train on the digits with DistributedDataParallel, one process per rank: 10_pytorch.py, ported line by line. Start it on two nodes with two processes each:

    torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST1:29500 10_ddp.py       on both nodes

With --checkpoint FILE, rank 0 saves the model at the end.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from manyhands import track
from manyhands.data import shard


def pick_device():
    """One GPU for each process, if there is one; else the CPU."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())  # on a node with fewer GPUs than processes, processes share a GPU, and gloo is used
        return torch.device("cuda")
    return torch.device("cpu")


def train(device):
    model = track.network(device)
    if dist.get_rank() != 0:  # as if rank 0 alone had found a checkpoint
        torch.nn.init.zeros_(model[0].weight)
    model = DistributedDataParallel(model)  # sends rank 0's weights to all ranks, and averages the gradients in backward
    optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
    mine = shard(track.ROWS, dist.get_rank(), dist.get_world_size())
    x, y = (torch.from_numpy(array).to(device) for array in track.data())
    for step in range(track.STEPS):
        rows = track.rows(step)
        optimiser.zero_grad()
        part = cross_entropy(model(x[rows][mine]), y[rows][mine], reduction="sum") / track.ROWS
        (part * dist.get_world_size()).backward()  # DDP averages, so that the sum needs this factor
        optimiser.step()
    return model.module


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--checkpoint")
    arguments = arguments.parse_args()
    device = pick_device()
    own_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])  # NCCL refuses two ranks on one GPU
    dist.init_process_group("nccl" if own_gpu else "gloo")
    model = train(device)
    far = torch.tensor(track.distance(model.parameters(), track.one_process()[0]), dtype=torch.float64, device=device)
    dist.all_reduce(far, op=dist.ReduceOp.MAX)  # in place, and a collective: all ranks call it, and rank 0 prints
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks: weights of one process on all of them, to 1e-12: {far.item() < 1e-12}")
    if arguments.checkpoint and dist.get_rank() == 0:
        torch.save(model.state_dict(), arguments.checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
