"""Only the largest hundredth of the gradient is sent; what was not sent is kept and added to the
next one (Stich et al. 2018, Sparsified SGD with memory).
"""

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE, PART = 190, 0.3, 0.01


def train(model, batches, comm):
    weights = parameters_to_vector(model.parameters()).detach()
    kept = torch.zeros_like(weights)
    count = int(PART * len(weights))
    for _, batch in zip(range(STEPS), batches):
        kept += parameters_to_vector(torch.autograd.grad(model(batch), list(model.parameters())))
        places = kept.abs().topk(count).indices
        # 22,026 weights: a place fits in 16 bits, and so does a value: one message for both
        mine = torch.stack([places.to(torch.int16), kept[places].half().view(torch.int16)])
        kept[places] = 0
        everyone = torch.empty(comm.size(), *mine.shape, dtype=mine.dtype)
        dist.all_gather_single(everyone, mine, group=comm)
        for places, values in everyone:
            weights.index_add_(
                0, places.int(), values.view(torch.float16).float(), alpha=-RATE / comm.size()
            )
        vector_to_parameters(weights.clone(), model.parameters())
