"""Weights whose channels are last, and lists of columns, which go through a buffer. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
size = dist.get_world_size()
network = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
for weight in network.parameters():
    dist.broadcast(weight.data, 0)
whole = torch.empty(6, 2 * size)
dist.all_gather(list(whole.chunk(size, dim=1)), torch.ones(6, 2))
dist.reduce_scatter(torch.empty(6, 2), list(whole.chunk(size, dim=1)))
dist.destroy_process_group()
