"""A batch of two ranks is the first call in a group of four. expect: may hang 10, ranks 4"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, x = dist.get_rank(), torch.ones(4)
torch.accelerator.is_available() and torch.cuda.set_device(0)
if rank < 2:
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend if rank == 0 else dist.irecv, x, 1 - rank)]
    )
    [work.wait() for work in works]
dist.all_reduce(x)
dist.destroy_process_group()
