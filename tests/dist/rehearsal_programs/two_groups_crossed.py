"""Two groups of the same ranks, used in two orders. expect: hangs 12 15, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
second = dist.new_group(list(range(size)))
x, y = torch.ones(4), torch.ones(4)

if rank == 0:
    first = dist.all_reduce(x, async_op=True)
    other = dist.all_reduce(y, group=second, async_op=True)
else:
    other = dist.all_reduce(y, group=second, async_op=True)
    first = dist.all_reduce(x, async_op=True)
first.wait()
other.wait()
dist.destroy_process_group()
