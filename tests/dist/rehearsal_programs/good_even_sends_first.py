"""Even ranks send first, odd ranks receive first. expect: nothing, ranks 4"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x, y = torch.ones(4), torch.empty(4)
if rank % 2 == 0:
    dist.send(x, rank ^ 1)
    dist.recv(y, rank ^ 1)
else:
    dist.recv(y, rank ^ 1)
    dist.send(x, rank ^ 1)
dist.destroy_process_group()
