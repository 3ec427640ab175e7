"""No rank hears of the others.

fails: mended/together, mended/equal, mended/lean
shows: The ranks end with different weights
points: 18
"""
# %% grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).backward()
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
