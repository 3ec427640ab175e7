"""A script for GPUs: its groups are asked of NCCL, and made of gloo here. expect: nothing, ranks 2"""

import os

import torch
import torch.distributed as dist

local = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
dist.init_process_group(backend="nccl", device_id=device)
x = torch.ones(4, device=device)
dist.all_reduce(x, op=dist.ReduceOp.AVG, group=dist.new_group(backend="nccl"))
dist.destroy_process_group()
