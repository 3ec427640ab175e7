"""The sum is read before the wait, and what is sent is written over. expect: differs 10 15, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x, y = torch.ones(1000), torch.ones(10)
work = dist.all_reduce(x, async_op=True)
total = x.sum()
work.wait()
if rank == 0:
    work = dist.isend(y, 1)

    y.zero_()
    work.wait()
else:
    dist.recv(y, 0)
dist.destroy_process_group()
