"""The same training as 06_train.py, started from Python: torch.multiprocessing.spawn, one node.

    python 06_spawn.py
"""

import gc
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 2


def work(rank, world_size, folder):
    """What each process runs. spawn gives it its number, and nothing else: who meets where, we must say ourselves."""
    torch.set_num_threads(1)
    training = import_module("06_train")  # a name that begins with a digit cannot stand in an import statement
    device = training.join(rank, world_size, init_method=f"file://{folder}/meeting", rank=rank, world_size=world_size)
    total, _ = training.train(device)
    totals = [None] * world_size
    dist.all_gather_object(totals, total)  # by NCCL an object travels through the current device: `join` has set it
    if rank == 0:
        for r, total in enumerate(totals):
            print(f"rank {r} of {world_size}  sum of |weights| {total:.2f}")
    gc.collect()  # DDP sits in a reference cycle: free it now, or its process group may crash when the interpreter ends
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as folder:  # a meeting place without a port: no neighbour can have taken it
        mp.spawn(work, args=(WORLD_SIZE, folder), nprocs=WORLD_SIZE)
