"""DistributedDataParallel with a clock that waits for the GPU. expect: nothing, ranks 2"""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
network = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
)
optimizer = torch.optim.Adam(network.parameters())
for step in range(3):
    begun = time.perf_counter()
    optimizer.zero_grad()
    loss = network(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    shown = loss.item()
    took = time.perf_counter() - begun
average = loss.detach().clone()
dist.all_reduce(average, op=dist.ReduceOp.AVG)
dist.destroy_process_group()
