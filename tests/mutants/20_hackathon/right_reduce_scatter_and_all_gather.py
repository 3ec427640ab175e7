"""A reduce-scatter and an all-gather of the shards.

runs: mended
"""
# %% grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    """Train on all batches: the weights of one process, with one all-reduce a step."""
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).backward()
        slopes = parameters_to_vector([weight.grad for weight in weights])
        n = len(slopes); whole = torch.cat([slopes, slopes.new_zeros(-n % 4)]); own = whole.new_empty(len(whole) // 4)
        dist.reduce_scatter_single(own, whole, op=dist.ReduceOp.AVG, group=comm); dist.all_gather_single(whole, own, group=comm); slopes = whole[:n]
        vector_to_parameters(slopes, [weight.grad for weight in weights])
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
