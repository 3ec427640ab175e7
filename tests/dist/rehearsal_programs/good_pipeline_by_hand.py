"""Four stages hand activations on and gradients back, by send and recv. expect: nothing, ranks 4"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
layer = torch.nn.Linear(4, 4)
for micro in range(3):
    x = torch.ones(2, 4)
    if rank > 0:
        dist.recv(x, rank - 1)
    x.requires_grad_()
    y = layer(x)
    if rank < size - 1:
        dist.send(y.detach(), rank + 1)
        slope = torch.empty_like(y)
        dist.recv(slope, rank + 1)
    else:
        slope = torch.ones_like(y)
    y.backward(slope)
    if rank > 0:
        dist.send(x.grad, rank - 1)
dist.destroy_process_group()
