"""Train on the digits with Horovod and PyTorch, one process per rank. Any of these starts it on two nodes with two processes each:

    horovodrun -np 4 -H HOST1:2,HOST2:2 python 10_pytorch.py
    mpirun -n 4 -hosts HOST1:2,HOST2:2 python 10_pytorch.py       MPICH; Open MPI: -H in place of -hosts
    sbatch --nodes 2 --ntasks-per-node 2 10_horovod.sbatch

With --checkpoint FILE, rank 0 saves the model at the end.
"""

import argparse

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy

from manyhands import track
from manyhands.data import shard


def pick_device():
    """One GPU for each process, if there is one and Horovod was built for GPUs; else the CPU."""
    if torch.cuda.is_available() and hvd.nccl_built():
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())  # some launchers show each process its own GPU only, as number 0
        return torch.device("cuda")
    return torch.device("cpu")


def train(device):
    model = track.network(device)
    if hvd.rank() != 0:  # as if rank 0 alone had found a checkpoint
        torch.nn.init.zeros_(model[0].weight)
    optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), op=hvd.Sum)  # sums of parts of the mean
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    mine = shard(track.ROWS, hvd.rank(), hvd.size())
    x, y = (torch.from_numpy(array).to(device) for array in track.data())
    for step in range(track.STEPS):
        rows = track.rows(step)
        optimiser.zero_grad()
        (cross_entropy(model(x[rows][mine]), y[rows][mine], reduction="sum") / track.ROWS).backward()
        optimiser.step()
    return model


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--checkpoint")
    arguments = arguments.parse_args()
    hvd.init()
    model = train(pick_device())
    far = track.distance(model.parameters(), track.one_process()[0])
    print(f"rank {hvd.rank()} of {hvd.size()}, local {hvd.local_rank()} of {hvd.local_size()}: weights of one process, to 1e-12: {far < 1e-12}")
    if arguments.checkpoint and hvd.rank() == 0:
        torch.save(model.state_dict(), arguments.checkpoint)
    hvd.shutdown()


if __name__ == "__main__":
    main()
