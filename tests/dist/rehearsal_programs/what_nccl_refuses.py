"""A bitwise or, int16, a transposed and a sparse tensor. expect: fails 9 12 14 15 16, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
whole, short = torch.ones(4, dtype=torch.int32), torch.ones(4, dtype=torch.int16)

dist.all_reduce(whole, op=dist.ReduceOp.BOR)

if dist.get_rank() == 0:
    dist.send(short, 1)
else:
    dist.recv(short, 0)
dist.all_reduce(torch.ones(4, 4).t())
dist.all_reduce(torch.eye(3).to_sparse())
dist.destroy_process_group()
