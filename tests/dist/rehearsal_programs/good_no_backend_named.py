"""Without a name of a backend a group has gloo for the CPU and NCCL for GPUs. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group()
names = [None] * dist.get_world_size()
dist.all_gather_object(names, dist.get_rank())
dist.broadcast_object_list(names, src=0, device=torch.device("cpu"))
dist.broadcast_object_list(names, src=0, group=dist.new_group(), device=torch.device("cpu"))
dist.destroy_process_group()
