"""Two messages that only their tags tell apart: NCCL pairs them in order. expect: differs 10 12, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
a, b = torch.zeros(2), torch.ones(2)

if dist.get_rank() == 0:
    works = [dist.isend(a, 1, tag=7), dist.isend(b, 1, tag=8)]
else:
    works = [dist.irecv(b, 0, tag=8), dist.irecv(a, 0, tag=7)]
for work in works:
    work.wait()
dist.destroy_process_group()
