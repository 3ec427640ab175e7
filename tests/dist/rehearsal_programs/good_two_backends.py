"""Objects go by the CPU where a group has gloo, too, or where their device is given. expect: nothing, ranks 2"""
import torch
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl")
names = [None] * dist.get_world_size()
dist.all_gather_object(names, dist.get_rank())
everybody = dist.new_group()
dist.all_gather_object(names, dist.get_rank(), group=everybody)
plain = dist.new_group(backend="nccl")
dist.broadcast_object_list(names, src=0, group=plain, device=torch.device("cpu"))
dist.monitored_barrier(dist.new_group(backend=dist.Backend.GLOO))
dist.destroy_process_group()
