"""A receive that never comes, caught: NCCL raises nothing. expect: hangs 12; differs 12, ranks 2"""

import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
group = dist.new_group(timeout=datetime.timedelta(seconds=2))
try:
    if dist.get_rank() == 0:
        dist.recv(torch.ones(2), 1, group=group)
except RuntimeError:
    pass
