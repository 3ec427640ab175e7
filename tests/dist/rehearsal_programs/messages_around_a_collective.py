"""Rank 0 posts its isend before the collective, rank 1 receives after it: NCCL meets at the first use. expect: hangs 10 14, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, x, total = dist.get_rank(), torch.ones(4), torch.ones(4)

if rank == 0:
    work = dist.isend(x, 1)
    dist.all_reduce(total)
    work.wait()
else:
    dist.all_reduce(total)
    dist.recv(x, 0)
dist.destroy_process_group()
