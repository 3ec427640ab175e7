"""A ring in which each sends, then receives: with NCCL each pair's first use is a meeting, and all wait in the first. expect: hangs 10, ranks 4"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
x, y = torch.full((4,), float(rank)), torch.empty(4)

work = dist.isend(x, (rank + 1) % size)
dist.recv(y, (rank - 1) % size)
work.wait()
dist.destroy_process_group()
