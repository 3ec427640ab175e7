"""Places of 64 bits.

fails: pack/small
shows: A place fits in 16 bits
points: 21
"""
# %% grade_id="pack"
import torch


def pack(kept, count):
    places = kept.abs().topk(count).indices
    values = kept[places].half()
    kept[places] -= values.float()
    return torch.stack([places, values.view(torch.int16).long()])


def unpack(message, size):
    places, values = message
    dense = torch.zeros(size)
    dense[places] = values.to(torch.int16).view(torch.float16).float()
    return dense
