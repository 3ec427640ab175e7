"""Parts of one buffer: each is used after its own wait, or is not under way; and a work that is asked whether it has ended. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
other = 1 - dist.get_rank()
chunks = list(torch.ones(64).chunk(4))
works = [dist.all_reduce(chunk, async_op=True) for chunk in chunks]
for chunk, work in zip(chunks, works):
    work.wait()
    chunk /= 2
grid = torch.ones(8, 4)
works = dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, grid[1], other), dist.P2POp(dist.irecv, grid[0], other)]
)
inner = grid[2:-2] + grid[3:-1]
for number in range(len(works)):
    works[number].wait()
grid[1] = grid[0]
work = dist.all_reduce(grid, async_op=True)
while not work.is_completed():
    inner = inner.tanh()
grid /= 2
dist.destroy_process_group()
