"""An all-gather and a mean in place of the all-reduce.

fails: mended/lean
shows: an all-gather sends every rank the whole tensors of all the others
points: 21
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
        everyone = [torch.empty_like(slopes) for _ in range(4)]; dist.all_gather(everyone, slopes, group=comm); slopes = sum(everyone) / 4
        vector_to_parameters(slopes, [weight.grad for weight in weights])
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
