"""A communication hook of DDP that compresses gradients. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
network = DistributedDataParallel(torch.nn.Linear(8, 1))
network.register_comm_hook(None, fp16_compress_hook)
for step in range(2):
    network(torch.ones(2, 8)).sum().backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
dist.destroy_process_group()
