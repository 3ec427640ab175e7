"""The collectives that have a root or lists. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
x = torch.ones(3)
pieces = [torch.empty(3) for _ in range(size)]
dist.all_gather(pieces, x)
dist.gather(x, pieces if rank == 0 else None, dst=0)
dist.scatter(x, pieces if rank == 1 else None, src=1)
dist.reduce(x, 0)
out = torch.empty(3)
dist.reduce_scatter(out, pieces)
dist.all_to_all_single(torch.empty(4), torch.ones(4))
whole = torch.empty(6)
dist.all_gather_single(whole, x)
dist.reduce_scatter_single(out, whole)
dist.barrier()
dist.destroy_process_group()
