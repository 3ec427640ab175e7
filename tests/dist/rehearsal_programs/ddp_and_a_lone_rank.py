"""Rank 0 evaluates with a collective that the others leave out, in a group of its own order. expect: may hang 20, ranks 2"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
evaluation = dist.new_group([0, 1])
network = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    network(torch.ones(2, 4)).sum().backward()
    optimizer.step()

x, y = torch.ones(1), torch.ones(1)
if rank == 0:
    one, two = (
        dist.all_reduce(x, group=evaluation, async_op=True),
        dist.all_reduce(y, async_op=True),
    )

else:
    two, one = (
        dist.all_reduce(y, async_op=True),
        dist.all_reduce(x, group=evaluation, async_op=True),
    )
one.wait()
two.wait()
dist.destroy_process_group()
