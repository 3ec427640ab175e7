"""Only its members make a group. expect: may hang 9, ranks 3"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
everybody, x = dist.new_group(), torch.ones(4)
if dist.get_rank() < 2:
    pair = dist.new_group([0, 1])
    dist.all_reduce(x, group=pair)
dist.all_reduce(x, group=everybody)
dist.destroy_process_group()
