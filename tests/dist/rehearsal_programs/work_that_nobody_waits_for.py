"""Gradients are reduced, and used while they may still be under way. expect: differs 11 12, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
network = torch.nn.Linear(4, 4)
network(torch.ones(2, 4)).sum().backward()

for weight in network.parameters():
    dist.all_reduce(weight.grad, async_op=True)
    weight.grad /= 2
dist.destroy_process_group()
