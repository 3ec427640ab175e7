"""A sum, a broadcast, and the value read at the end. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(4) * dist.get_rank()
dist.all_reduce(x)
dist.broadcast(x, 0)
assert x.sum().item() == 4
dist.destroy_process_group()
