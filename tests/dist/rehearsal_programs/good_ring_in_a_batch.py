"""A ring of batches, three times around. expect: nothing, ranks 4"""

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if torch.cuda.is_available():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
rank, size = dist.get_rank(), dist.get_world_size()
x, y = torch.full((4,), float(rank)), torch.empty(4)
for _ in range(3):
    to, source = (rank + 1) % size, (rank - 1) % size
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, to), dist.P2POp(dist.irecv, y, source)]
    ):
        work.wait()
    x, y = y, x
dist.destroy_process_group()
