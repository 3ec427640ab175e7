"""Weights whose channels are last on one rank only, and columns that are scattered. expect: differs 12 13, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
first, whole = dist.get_rank() == 0, torch.ones(4, 4)
weight = torch.ones(4, 3, 3, 3).to(
    memory_format=torch.channels_last if first else torch.contiguous_format
)

dist.broadcast(weight, 0)
dist.scatter(torch.empty(4, 2), list(whole.chunk(2, dim=1)) if first else None, src=0)
dist.destroy_process_group()
