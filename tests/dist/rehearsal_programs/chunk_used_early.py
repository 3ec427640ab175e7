"""The wait for one chunk says nothing of the next. expect: differs 10, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
one, two = torch.ones(64).chunk(2)
works = [dist.all_reduce(one, async_op=True), dist.all_reduce(two, async_op=True)]
works[0].wait()
two /= 2
works[1].wait()
dist.destroy_process_group()
