"""A server that receives from whoever comes first. expect: fails 10, ranks 3"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, x = dist.get_rank(), torch.ones(3)
if rank == 0:
    for _ in range(dist.get_world_size() - 1):
        dist.recv(x)
else:
    dist.send(x, 0)
dist.destroy_process_group()
