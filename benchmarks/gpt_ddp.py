"""The small GPT (`manyhands.gpt`) under DistributedDataParallel, as a script of its own. Each rank has 8 rows of a step.

    torchrun --nproc-per-node 2 benchmarks/gpt_ddp.py --steps 12
"""

import argparse
import gc

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from manyhands.gpt import GPT, batches, loss_of


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=12)
    steps = options.parse_args().steps
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(steps):
        x, y = batches(step * world_size + rank)
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    del model
    gc.collect()  # DDP sits in a reference cycle: free it before its process group goes
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
