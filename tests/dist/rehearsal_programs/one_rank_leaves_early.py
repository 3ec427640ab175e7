"""Rank 1 has fewer batches, and leaves the loop one step before the others; gloo waits, too. expect: hangs 10, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
batches = 3 - dist.get_rank()
for _ in range(batches):
    loss = torch.ones(1)
    dist.all_reduce(loss)
dist.destroy_process_group()
