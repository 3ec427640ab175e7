"""Objects, where each rank has chosen its GPU, and in a group for the CPU. expect: nothing, ranks 2"""

import os

import torch
import torch.distributed as dist

device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else None
if device:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if device else "gloo", device_id=device)
names = [None] * dist.get_world_size()
dist.all_gather_object(names, dist.get_rank())
dist.all_gather_object(names, dist.get_rank(), group=dist.new_group(backend="gloo"))
dist.destroy_process_group()
