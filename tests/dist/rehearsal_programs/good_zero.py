"""ZeroRedundancyOptimizer over DDP. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
network = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = ZeroRedundancyOptimizer(network.parameters(), torch.optim.Adam, lr=0.1)
for step in range(2):
    network(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
