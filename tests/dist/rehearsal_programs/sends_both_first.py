"""Opposite isends with a receive behind each: gloo's isend returns at once, NCCL meets at the pair's first use. expect: hangs 11, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
mine, theirs = torch.ones(1 << 20), torch.empty(1 << 20)
other = 1 - rank

work = dist.isend(mine, other)
dist.recv(theirs, other)
work.wait()
dist.destroy_process_group()
