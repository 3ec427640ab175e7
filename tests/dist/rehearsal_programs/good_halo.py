"""Neighbours exchange their edges; the ends have one neighbour only. expect: nothing, ranks 4"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
dist.all_reduce(torch.ones(1))
rows, above, below = torch.ones(6, 3), torch.zeros(3), torch.zeros(3)
operations = []
if rank > 0:
    operations += [
        dist.P2POp(dist.isend, rows[0], rank - 1),
        dist.P2POp(dist.irecv, above, rank - 1),
    ]
if rank < size - 1:
    operations += [
        dist.P2POp(dist.isend, rows[-1], rank + 1),
        dist.P2POp(dist.irecv, below, rank + 1),
    ]
for work in dist.batch_isend_irecv(operations):
    work.wait()
dist.destroy_process_group()
