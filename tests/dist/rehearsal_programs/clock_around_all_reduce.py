"""A clock around a collective measures how long it takes to queue it. expect: remark 13, ranks 2"""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(1000)

begun = time.perf_counter()
dist.all_reduce(x)
took = time.perf_counter() - begun
assert took > 0
dist.destroy_process_group()
