"""A receive that is larger than what is sent. expect: may hang 10 12, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")

rank = dist.get_rank()
if rank == 0:
    dist.send(torch.ones(4), 1)
else:
    dist.recv(torch.ones(8), 0)
dist.destroy_process_group()
