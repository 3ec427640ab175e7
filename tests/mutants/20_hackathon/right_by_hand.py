"""Mended without an optimizer, summed and then divided.
"""
# %% grade_id="mended"
import torch
import torch.distributed as dist


def mended(model, batches, comm):
    weights = list(model.parameters())
    moving = torch.zeros(sum(one.numel() for one in weights))
    for batch in batches:
        slopes = torch.cat([one.flatten() for one in torch.autograd.grad(model(batch), weights)])
        dist.all_reduce(slopes, group=comm)
        slopes /= dist.get_world_size(comm)
        slopes *= min(1.0, 2.0 / float(slopes.norm()))
        moving = 0.9 * moving + slopes
        with torch.no_grad():
            for one, part in zip(weights, moving.split([one.numel() for one in weights])):
                one -= 0.1 * part.view(one.shape)
