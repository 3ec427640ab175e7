"""Objects go through the current GPU, which nobody chose. expect: may hang 16 17, ranks 2"""

import sys
from types import ModuleType

import torch.distributed as dist

# imported, and not used
sys.modules.update(accelerate=ModuleType("accelerate"), lightning=ModuleType("lightning"))
# torch.cuda.set_device(local_rank) is not called, and device_ids=[local_rank] of
# DistributedDataParallel is no choice
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

names = [None] * size
dist.all_gather_object(names, f"rank {rank}")
dist.broadcast_object_list(names, src=0)
dist.destroy_process_group()
