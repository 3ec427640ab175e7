"""Objects go through the current GPU, which nobody chose. expect: may hang 8 9, ranks 2"""
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

names = [None] * size
dist.all_gather_object(names, f"rank {rank}")
dist.broadcast_object_list(names, src=0)
dist.destroy_process_group()
