"""Objects go by the CPU where a group has gloo, too, or where their device is given. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl")
names = [None] * dist.get_world_size()
dist.all_gather_object(names, dist.get_rank())
everybody = dist.new_group()
dist.all_gather_object(names, dist.get_rank(), group=everybody)
plain = dist.new_group(backend="nccl")
here = (
    torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    if torch.cuda.is_available()
    else torch.device("cpu")
)
dist.broadcast_object_list(names, src=0, group=plain, device=here)
dist.monitored_barrier(dist.new_group(backend=dist.Backend.GLOO))
dist.destroy_process_group()
