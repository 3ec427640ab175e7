"""Mended with DistributedDataParallel, whose one bucket is a message too.
"""
# %% grade_id="mended"
import torch
from torch.nn.parallel import DistributedDataParallel


def mended(model, batches, comm):
    ddp = DistributedDataParallel(model, process_group=comm)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    for batch in batches:
        loss = ddp(batch)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(ddp.parameters(), 2.0)
        optimizer.step()
