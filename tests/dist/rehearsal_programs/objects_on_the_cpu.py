"""Objects are sent by the CPU, in a group that has NCCL only. expect: fails 10 11 12, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl")
names = [dist.get_rank()] * 2
dist.broadcast_object_list(names, src=0, device=torch.device("cpu"))
plain = dist.new_group(backend="nccl")
dist.broadcast_object_list(names, src=0, group=plain, device=torch.device("cpu"))
dist.broadcast_object_list(names, src=1, group=plain, device="cpu")
dist.broadcast_object_list(names, 0, plain, torch.device("cpu", 0))
dist.destroy_process_group()
