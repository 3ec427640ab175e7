"""Tensor parallelism of a toy model with two linear layers, the first cut by columns and the second by rows."""

import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from log_utils import get_logger, rank_log, verify_min_gpu_count

if not verify_min_gpu_count(min_gpus=2):
    print("Unable to locate sufficient 2 gpus to run this example. Exiting.")
    sys.exit()


class ToyModel(nn.Module):
    """An MLP."""

    def __init__(self):
        super().__init__()
        self.in_proj = nn.Linear(10, 32)
        self.relu = nn.ReLU()
        self.out_proj = nn.Linear(32, 5)

    def forward(self, x):
        return self.out_proj(self.relu(self.in_proj(x)))


logger = get_logger()
_world_size = int(os.environ["WORLD_SIZE"])
device_mesh = init_device_mesh(device_type="cuda", mesh_shape=(_world_size,))
_rank = device_mesh.get_rank()
print(f"Starting PyTorch TP example on rank {_rank}.")
assert _world_size % 2 == 0, f"TP examples require even number of GPUs, but got {_world_size} gpus"
rank_log(_rank, logger, f"Device Mesh created: {device_mesh=}")

# the ranks make different weights here, and parallelize_module distributes those of the first rank
tp_model = ToyModel().to("cuda")
tp_model = parallelize_module(
    module=tp_model,
    device_mesh=device_mesh,
    parallelize_plan={
        "in_proj": ColwiseParallel(),
        "out_proj": RowwiseParallel(),
    },
)
optimizer = torch.optim.AdamW(tp_model.parameters(), lr=0.01, foreach=True)

num_iters = 12
rank_log(_rank, logger, "Tensor Parallel training starting...")
for i in range(num_iters):
    # all ranks need the same input; the seed stands for a data loader
    torch.manual_seed(i)
    inp = torch.rand(20, 10, device="cuda")
    target = torch.rand(20, 5, device="cuda")
    output = tp_model(inp)
    loss = F.mse_loss(output, target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if i % 5 == 4:
        norms = {name: param.full_tensor().norm().item() for name, param in tp_model.named_parameters()}
        rank_log(_rank, logger, f"norms of the weights: {norms}")
    rank_log(_rank, logger, f"Tensor Parallel iter {i} completed, loss {loss.item():.4f}")

rank_log(_rank, logger, "Tensor Parallel training completed!")
torch.distributed.destroy_process_group()
