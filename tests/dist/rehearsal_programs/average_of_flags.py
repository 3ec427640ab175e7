"""Flags are averaged as bool, and gloo itself refuses. expect: fails 9; differs 9, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
flags, x = torch.tensor([True]), torch.ones(3)
try:
    dist.all_reduce(flags, op=dist.ReduceOp.AVG)
except (RuntimeError, ValueError, TypeError):
    pass
dist.all_reduce(x, op=dist.ReduceOp.BXOR if x.dtype == torch.int32 else dist.ReduceOp.SUM)
dist.destroy_process_group()
