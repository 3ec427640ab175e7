"""Halves, the whole, and a group for the CPU whose barrier is gloo's. expect: nothing, ranks 4"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
half = [dist.new_group([0, 1]), dist.new_group([2, 3])][dist.get_rank() // 2]
x = torch.ones(3)
dist.all_reduce(x, group=half)
dist.all_reduce(x)
on_cpu = dist.new_group(backend="gloo")
dist.monitored_barrier(group=on_cpu)
dist.destroy_process_group()
