"""Uneven batches under Join, whose works torch itself sees to. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
network = DistributedDataParallel(torch.nn.Linear(4, 1))
with Join([network]):
    for _ in range(2 + dist.get_rank()):
        network(torch.ones(2, 4)).sum().backward()
dist.destroy_process_group()
