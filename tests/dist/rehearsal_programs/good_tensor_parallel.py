"""DTensor: a layer by columns, the next by rows. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
parallelize_module(network, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
network(torch.ones(2, 8)).sum().backward()
dist.destroy_process_group()
