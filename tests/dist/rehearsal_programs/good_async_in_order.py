"""Works that are waited for before their tensors are used, in one order. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
tensors = [torch.ones(10) for _ in range(5)]
works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
others = torch.zeros(10) + 1
for tensor, work in zip(tensors, works):
    work.wait()
    tensor /= 2
dist.destroy_process_group()
