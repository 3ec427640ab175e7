"""The small GPT (`manyhands.gpt`) under DistributedDataParallel, one row a rank.

It is a separate script.

    torchrun --nproc-per-node 2 benchmarks/gpt_ddp.py --steps 12 --computes-ms 300

With --computes-ms a step's forward and backward take so much longer, in which the processor waits,
as it does while a GPU computes: a third in forward, two thirds in backward, spread evenly over the
blocks.
"""

import argparse
import gc
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from manyhands.gpt import GPT, batches, loss_of


def slow_down(model, seconds):
    """Make a step take this many seconds more by sleeping, a third forward, the rest backward."""
    each_s = seconds / 3 / len(model.blocks)
    for block in model.blocks.values():
        block.register_forward_pre_hook(lambda *_: time.sleep(each_s))
        block.register_full_backward_pre_hook(lambda *_: time.sleep(2 * each_s))


def main():
    """Train for some steps, as the options say."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--computes-ms", type=float, default=0)
    asked = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = GPT()
    slow_down(model, asked.computes_ms / 1e3)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(asked.steps):
        x, y = batches(step * world_size + rank, rows=1)
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    del model
    gc.collect()  # DDP sits in a reference cycle: free it before its process group goes
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
